// SPDX-License-Identifier: Apache-2.0
// Kernels that compute on the host with Eigen.
#include <tfplug/op_kernels/all_eigen.h>
#include <tfplug/op_kernels/register.h>

#include "backend.h"

TFPLUG_REGISTER_BACKEND(vulkan::Backend, tfplug::AllEigenOps);
