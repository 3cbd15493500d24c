// SPDX-License-Identifier: Apache-2.0
// Kernels that compute on the host with Eigen.
#include <tfplug/backend/ops/all_eigen.h>
#include <tfplug/backend/register.h>

#include "backend.h"

TFPLUG_REGISTER_BACKEND(opencl::Backend, tfplug::AllEigenOps);
