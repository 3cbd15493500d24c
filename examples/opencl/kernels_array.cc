// SPDX-License-Identifier: Apache-2.0
#include <tfplug/backend/ops/all_array.h>
#include <tfplug/backend/register.h>

#include "backend.h"

TFPLUG_REGISTER_BACKEND(opencl::Backend, tfplug::AllArrayOps);

// int32 tensors of shapes are in host memory.
TFPLUG_REGISTER_HOST_KERNELS(tfplug::ArrayOps);
