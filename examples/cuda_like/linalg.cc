// SPDX-License-Identifier: Apache-2.0
// Kernels that compute on the host with Eigen.
#include <tfplug/backend/ops/linalg.h>
#include <tfplug/backend/ops/special.h>
#include <tfplug/backend/register.h>

#include "backend.h"

TFPLUG_REGISTER_BACKEND(cuda_like::Backend, tfplug::LinalgOps,
                        tfplug::SpecialOps);
