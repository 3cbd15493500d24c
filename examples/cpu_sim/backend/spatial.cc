// SPDX-License-Identifier: Apache-2.0
#include <tfplug/backend/ops/batch_norm.h>
#include <tfplug/backend/ops/conv.h>
#include <tfplug/backend/ops/fused.h>
#include <tfplug/backend/ops/pool.h>
#include <tfplug/backend/ops/resize.h>
#include <tfplug/backend/register.h>

#include "backend/backend.h"

TFPLUG_REGISTER_BACKEND(cpu_sim::Backend, tfplug::BatchNormOps, tfplug::ConvOps,
                        tfplug::FusedOps, tfplug::PoolOps, tfplug::ResizeOps);
