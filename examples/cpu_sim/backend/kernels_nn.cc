// SPDX-License-Identifier: Apache-2.0
#include "backend/backend.h"
#include "tfplug/op_kernels/all_nn.h"
#include "tfplug/op_kernels/register.h"

TFPLUG_REGISTER_BACKEND(cpu_sim::Backend, tfplug::AllNnOps);
