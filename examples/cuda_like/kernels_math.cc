// SPDX-License-Identifier: Apache-2.0
#include <tfplug/backend/ops/all_math.h>
#include <tfplug/backend/register.h>

#include "backend.h"

TFPLUG_REGISTER_BACKEND(cuda_like::Backend, tfplug::AllMathOps);

// int32 tensors of shapes are in host memory.
TFPLUG_REGISTER_HOST_KERNELS(tfplug::ReductionOps);
