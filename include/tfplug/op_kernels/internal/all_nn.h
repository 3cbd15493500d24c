// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_ALL_NN_H_
#define TFPLUG_OP_KERNELS_INTERNAL_ALL_NN_H_

#include "tfplug/base/separate.h"
#include "tfplug/op_kernels/batch_norm.h"
#include "tfplug/op_kernels/color.h"
#include "tfplug/op_kernels/conv.h"
#include "tfplug/op_kernels/crop.h"
#include "tfplug/op_kernels/ctc.h"
#include "tfplug/op_kernels/fused_products.h"
#include "tfplug/op_kernels/patches.h"
#include "tfplug/op_kernels/pool.h"
#include "tfplug/op_kernels/quantize.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/resample.h"
#include "tfplug/op_kernels/resize.h"
#include "tfplug/op_kernels/rnn.h"
#include "tfplug/op_kernels/softmax.h"
#include "tfplug/op_kernels/spatial.h"
#include "tfplug/op_kernels/training.h"
#include "tfplug/op_kernels/warp.h"
#include "tfplug/op_kernels/window_argmax.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

TFPLUG_SEPARABLE void AllNnOps(const Registrar& registrar) {
  BatchNormOps(registrar);
  ColorOps(registrar);
  ConvOps(registrar);
  CropOps(registrar);
  CtcOps(registrar);
  FusedOps(registrar);
  PatchOps(registrar);
  PoolOps(registrar);
  QuantizeOps(registrar);
  ResampleOps(registrar);
  ResizeOps(registrar);
  RnnOps(registrar);
  SoftmaxOps(registrar);
  SpatialOps(registrar);
  TrainingOps(registrar);
  WarpOps(registrar);
  WindowArgmaxOps(registrar);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_ALL_NN_H_
