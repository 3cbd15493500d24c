// SPDX-License-Identifier: Apache-2.0
#include <tfplug/backend/ops/activation.h>
#include <tfplug/backend/ops/convert.h>
#include <tfplug/backend/ops/math.h>
#include <tfplug/backend/ops/training.h>
#include <tfplug/backend/register.h>

#include "backend/backend.h"

TFPLUG_REGISTER_BACKEND(cpu_sim::Backend, tfplug::ActivationOps,
                        tfplug::ConvertOps, tfplug::MathOps,
                        tfplug::TrainingOps);
