// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_ALL_NN_H_
#define TFPLUG_BACKEND_OPS_ALL_NN_H_

#include "tfplug/backend/ops/batch_norm.h"
#include "tfplug/backend/ops/color.h"
#include "tfplug/backend/ops/conv.h"
#include "tfplug/backend/ops/crop.h"
#include "tfplug/backend/ops/fused.h"
#include "tfplug/backend/ops/patches.h"
#include "tfplug/backend/ops/pool.h"
#include "tfplug/backend/ops/quantize.h"
#include "tfplug/backend/ops/resize.h"
#include "tfplug/backend/ops/softmax.h"
#include "tfplug/backend/ops/spatial.h"
#include "tfplug/backend/ops/training.h"
#include "tfplug/backend/ops/warp.h"
#include "tfplug/backend/ops/window_argmax.h"
#include "tfplug/backend/registrar.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Registers the families of neural networks and images: convolutions, pooling,
// normalization, losses, optimizers, resizing.
inline void AllNnOps(const Registrar& registrar) {
  BatchNormOps(registrar);
  ColorOps(registrar);
  ConvOps(registrar);
  CropOps(registrar);
  FusedOps(registrar);
  PatchOps(registrar);
  PoolOps(registrar);
  QuantizeOps(registrar);
  ResizeOps(registrar);
  SoftmaxOps(registrar);
  SpatialOps(registrar);
  TrainingOps(registrar);
  WarpOps(registrar);
  WindowArgmaxOps(registrar);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_OPS_ALL_NN_H_
