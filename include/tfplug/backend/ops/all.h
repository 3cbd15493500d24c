// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_ALL_H_
#define TFPLUG_BACKEND_OPS_ALL_H_

#include "tfplug/backend/ops/all_array.h"
#include "tfplug/backend/ops/all_math.h"
#include "tfplug/backend/ops/all_nn.h"
#include "tfplug/backend/registrar.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Registers every family of ops. The three groups may be registered in files of
// their own, which then compile at the same time.
inline void AllOps(const Registrar& registrar) {
  AllArrayOps(registrar);
  AllMathOps(registrar);
  AllNnOps(registrar);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_OPS_ALL_H_
