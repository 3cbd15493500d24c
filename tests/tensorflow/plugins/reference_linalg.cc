// SPDX-License-Identifier: Apache-2.0
#include "reference_backend.h"
#include "tfplug/backend/ops/linalg.h"
#include "tfplug/backend/ops/special.h"
#include "tfplug/backend/register.h"

TFPLUG_REGISTER_BACKEND(reference::Backend, tfplug::LinalgOps,
                        tfplug::SpecialOps);
