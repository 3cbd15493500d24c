// SPDX-License-Identifier: Apache-2.0
// Defines tfplug::AllEigenOps of op_kernels/all_eigen.h, which needs Eigen.
#define TFPLUG_SEPARATE_PART
#include "tfplug/op_kernels/internal/all_eigen.h"
