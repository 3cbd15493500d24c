// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_ALL_EIGEN_H_
#define TFPLUG_OP_KERNELS_ALL_EIGEN_H_

#include "tfplug/op_kernels/linalg.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/special.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Registers the families that compute on the host with Eigen: factorizations of
// matrices, such as the QR of an orthogonal initializer, and special functions.
// Not a part of AllOps: this header needs Eigen.
inline void AllEigenOps(const Registrar& registrar) {
  LinalgOps(registrar);
  SpecialOps(registrar);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_ALL_EIGEN_H_
