// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_EIGEN_VERSION_H_
#define TFPLUG_OP_KERNELS_INTERNAL_EIGEN_VERSION_H_

#include <Eigen/Core>

#include "tfplug/base/contents.h"

// clang-format off
TFPLUG_CONTAINS(
    "eigen", TFPLUG_TEXT(EIGEN_WORLD_VERSION) "."
    TFPLUG_TEXT(EIGEN_MAJOR_VERSION) "."
    TFPLUG_TEXT(EIGEN_MINOR_VERSION), "MPL-2.0");
// clang-format on

#endif  // TFPLUG_OP_KERNELS_INTERNAL_EIGEN_VERSION_H_
