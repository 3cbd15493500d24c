// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_ALL_H_
#define TFPLUG_OP_KERNELS_ALL_H_

#include "tfplug/op_kernels/all_array.h"
#include "tfplug/op_kernels/all_math.h"
#include "tfplug/op_kernels/all_nn.h"
#include "tfplug/op_kernels/registrar.h"

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

#endif  // TFPLUG_OP_KERNELS_ALL_H_
