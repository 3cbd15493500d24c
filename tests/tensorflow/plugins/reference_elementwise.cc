// SPDX-License-Identifier: Apache-2.0
#include "reference_backend.h"
#include "tfplug/backend/ops/activation.h"
#include "tfplug/backend/ops/convert.h"
#include "tfplug/backend/ops/math.h"
#include "tfplug/backend/register.h"

TFPLUG_REGISTER_BACKEND(reference::Backend, tfplug::ActivationOps,
                        tfplug::ConvertOps, tfplug::MathOps);
