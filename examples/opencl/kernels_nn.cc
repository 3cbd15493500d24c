// SPDX-License-Identifier: Apache-2.0
#include <tfplug/backend/ops/batch_norm.h>
#include <tfplug/backend/ops/color.h>
#include <tfplug/backend/ops/conv.h>
#include <tfplug/backend/ops/diagonal.h>
#include <tfplug/backend/ops/fused.h>
#include <tfplug/backend/ops/matmul.h>
#include <tfplug/backend/ops/pool.h>
#include <tfplug/backend/ops/resize.h>
#include <tfplug/backend/ops/softmax.h>
#include <tfplug/backend/ops/spatial.h>
#include <tfplug/backend/ops/training.h>
#include <tfplug/backend/ops/warp.h>
#include <tfplug/backend/register.h>

#include "backend.h"

TFPLUG_REGISTER_BACKEND(opencl::Backend, tfplug::BatchNormOps, tfplug::ColorOps,
                        tfplug::ConvOps, tfplug::DiagonalOps, tfplug::FusedOps,
                        tfplug::MatMulOps, tfplug::PoolOps, tfplug::ResizeOps,
                        tfplug::SoftmaxOps, tfplug::SpatialOps,
                        tfplug::TrainingOps, tfplug::WarpOps);
