// SPDX-License-Identifier: Apache-2.0
#include "reference_backend.h"
#include "tfplug/backend/ops/batch_norm.h"
#include "tfplug/backend/ops/conv.h"
#include "tfplug/backend/ops/fused.h"
#include "tfplug/backend/ops/matmul.h"
#include "tfplug/backend/ops/pool.h"
#include "tfplug/backend/ops/softmax.h"
#include "tfplug/backend/register.h"

TFPLUG_REGISTER_BACKEND(reference::Backend, tfplug::BatchNormOps,
                        tfplug::ConvOps, tfplug::FusedOps, tfplug::MatMulOps,
                        tfplug::PoolOps, tfplug::SoftmaxOps);
