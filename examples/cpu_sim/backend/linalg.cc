// SPDX-License-Identifier: Apache-2.0
#include <tfplug/op_kernels/all_eigen.h>
#include <tfplug/op_kernels/register.h>

#include "backend/backend.h"

TFPLUG_REGISTER_BACKEND(cpu_sim::Backend, tfplug::AllEigenOps);
