// SPDX-License-Identifier: Apache-2.0
#include <tfplug/backend/ops/all_math.h>
#include <tfplug/backend/register.h>

#include "backend.h"

TFPLUG_REGISTER_BACKEND(cuda_like::Backend, tfplug::AllMathOps);
