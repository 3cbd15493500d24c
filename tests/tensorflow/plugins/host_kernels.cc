// SPDX-License-Identifier: Apache-2.0
#include "tfplug/backend/ops/array.h"
#include "tfplug/backend/ops/gather.h"
#include "tfplug/backend/ops/pad.h"
#include "tfplug/backend/ops/reduction.h"
#include "tfplug/backend/ops/scan.h"
#include "tfplug/backend/register.h"

TFPLUG_REGISTER_HOST_KERNELS(tfplug::ArrayOps, tfplug::GatherOps,
                             tfplug::PadOps, tfplug::ReductionOps,
                             tfplug::ScanOps);
