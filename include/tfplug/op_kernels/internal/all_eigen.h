// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_ALL_EIGEN_H_
#define TFPLUG_OP_KERNELS_INTERNAL_ALL_EIGEN_H_

#include "tfplug/base/separate.h"
#include "tfplug/op_kernels/linalg.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/special.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

TFPLUG_SEPARABLE void AllEigenOps(const Registrar& registrar) {
  LinalgOps(registrar);
  SpecialOps(registrar);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_ALL_EIGEN_H_
