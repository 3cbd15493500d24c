// SPDX-License-Identifier: Apache-2.0
#include "backend/backend.h"
#include "tfplug/backend/ops/all_nn.h"
#include "tfplug/backend/register.h"

TFPLUG_REGISTER_BACKEND(cpu_sim::Backend, tfplug::AllNnOps);
