// SPDX-License-Identifier: Apache-2.0
#include <tfplug/op_kernels/all.h>
#include <tfplug/op_kernels/array.h>
#include <tfplug/op_kernels/reduction.h>
#include <tfplug/op_kernels/register.h>

#include "backend.h"

TFPLUG_REGISTER_BACKEND(vulkan::Backend, tfplug::AllOps);

// int32 tensors of shapes are in host memory.
TFPLUG_REGISTER_HOST_KERNELS(tfplug::ArrayOps, tfplug::ReductionOps);
