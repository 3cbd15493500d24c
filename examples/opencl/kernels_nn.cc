// SPDX-License-Identifier: Apache-2.0
#include <tfplug/op_kernels/all_nn.h>
#include <tfplug/op_kernels/register.h>

#include "backend.h"

TFPLUG_REGISTER_BACKEND(opencl::Backend, tfplug::AllNnOps);
