// SPDX-License-Identifier: Apache-2.0
#include "reference_backend.h"
#include "tfplug/backend/ops/diagonal.h"
#include "tfplug/backend/ops/resize.h"
#include "tfplug/backend/ops/spatial.h"
#include "tfplug/backend/ops/training.h"
#include "tfplug/backend/register.h"

TFPLUG_REGISTER_BACKEND(reference::Backend, tfplug::DiagonalOps,
                        tfplug::ResizeOps, tfplug::SpatialOps,
                        tfplug::TrainingOps);
