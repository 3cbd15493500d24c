// SPDX-License-Identifier: Apache-2.0
// Defines tfplug::AllEigenOps of op_kernels/all_eigen.h, which needs Eigen.
#include "tfplug/op_kernels/internal/all_eigen.h"
