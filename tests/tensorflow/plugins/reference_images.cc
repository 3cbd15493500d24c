// SPDX-License-Identifier: Apache-2.0
#include "reference_backend.h"
#include "tfplug/backend/ops/crop.h"
#include "tfplug/backend/ops/patches.h"
#include "tfplug/backend/ops/quantize.h"
#include "tfplug/backend/ops/window_argmax.h"
#include "tfplug/backend/register.h"

TFPLUG_REGISTER_BACKEND(reference::Backend, tfplug::CropOps, tfplug::PatchOps,
                        tfplug::QuantizeOps, tfplug::WindowArgmaxOps);
