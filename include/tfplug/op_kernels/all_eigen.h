// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_ALL_EIGEN_H_
#define TFPLUG_OP_KERNELS_ALL_EIGEN_H_

#include "tfplug/base/separate.h"
#include "tfplug/op_kernels/registrar.h"
#ifndef TFPLUG_SEPARATE
#include "tfplug/op_kernels/internal/all_eigen.h"
#endif

#pragma GCC visibility push(hidden)

namespace tfplug {

// Registers the families that compute on the host with Eigen: factorizations of
// matrices, such as the QR of an orthogonal initializer, and special functions.
// Not a part of AllOps: this header needs Eigen.
TFPLUG_SEPARABLE void AllEigenOps(const Registrar& registrar);

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_ALL_EIGEN_H_
