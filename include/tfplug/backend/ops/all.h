// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_ALL_H_
#define TFPLUG_BACKEND_OPS_ALL_H_

#include "tfplug/backend/ops/activation.h"
#include "tfplug/backend/ops/array.h"
#include "tfplug/backend/ops/batch_norm.h"
#include "tfplug/backend/ops/concat.h"
#include "tfplug/backend/ops/conv.h"
#include "tfplug/backend/ops/convert.h"
#include "tfplug/backend/ops/diagonal.h"
#include "tfplug/backend/ops/fused.h"
#include "tfplug/backend/ops/gather.h"
#include "tfplug/backend/ops/math.h"
#include "tfplug/backend/ops/matmul.h"
#include "tfplug/backend/ops/pad.h"
#include "tfplug/backend/ops/pool.h"
#include "tfplug/backend/ops/random.h"
#include "tfplug/backend/ops/reduction.h"
#include "tfplug/backend/ops/resize.h"
#include "tfplug/backend/ops/scan.h"
#include "tfplug/backend/ops/scatter.h"
#include "tfplug/backend/ops/slice.h"
#include "tfplug/backend/ops/softmax.h"
#include "tfplug/backend/ops/spatial.h"
#include "tfplug/backend/ops/training.h"
#include "tfplug/backend/ops/variables.h"
#include "tfplug/backend/registrar.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Registers every family of ops.
inline void AllOps(const Registrar& registrar) {
  ActivationOps(registrar);
  ArrayOps(registrar);
  BatchNormOps(registrar);
  ConcatOps(registrar);
  ConvOps(registrar);
  ConvertOps(registrar);
  DiagonalOps(registrar);
  FusedOps(registrar);
  GatherOps(registrar);
  MathOps(registrar);
  MatMulOps(registrar);
  PadOps(registrar);
  PoolOps(registrar);
  RandomOps(registrar);
  ReductionOps(registrar);
  ResizeOps(registrar);
  ScanOps(registrar);
  ScatterOps(registrar);
  SliceOps(registrar);
  SoftmaxOps(registrar);
  SpatialOps(registrar);
  TrainingOps(registrar);
  VariableOps(registrar);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_OPS_ALL_H_
