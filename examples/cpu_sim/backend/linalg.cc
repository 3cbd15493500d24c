// SPDX-License-Identifier: Apache-2.0
#include <tfplug/backend/ops/all_eigen.h>
#include <tfplug/backend/register.h>

#include "backend/backend.h"

TFPLUG_REGISTER_BACKEND(cpu_sim::Backend, tfplug::AllEigenOps);
