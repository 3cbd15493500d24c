// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_ALL_EIGEN_H_
#define TFPLUG_BACKEND_OPS_ALL_EIGEN_H_

#include "tfplug/backend/ops/linalg.h"
#include "tfplug/backend/ops/special.h"
#include "tfplug/backend/registrar.h"

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

#endif  // TFPLUG_BACKEND_OPS_ALL_EIGEN_H_
