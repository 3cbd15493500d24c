// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_ALL_H_
#define TFPLUG_BACKEND_OPS_ALL_H_

#include "tfplug/backend/ops/activation.h"
#include "tfplug/backend/ops/array.h"
#include "tfplug/backend/ops/batch_norm.h"
#include "tfplug/backend/ops/bits.h"
#include "tfplug/backend/ops/check_numerics.h"
#include "tfplug/backend/ops/color.h"
#include "tfplug/backend/ops/complex.h"
#include "tfplug/backend/ops/concat.h"
#include "tfplug/backend/ops/conv.h"
#include "tfplug/backend/ops/convert.h"
#include "tfplug/backend/ops/counting.h"
#include "tfplug/backend/ops/crop.h"
#include "tfplug/backend/ops/cross.h"
#include "tfplug/backend/ops/data_format.h"
#include "tfplug/backend/ops/diagonal.h"
#include "tfplug/backend/ops/einsum.h"
#include "tfplug/backend/ops/fft.h"
#include "tfplug/backend/ops/fused.h"
#include "tfplug/backend/ops/gather.h"
#include "tfplug/backend/ops/identity.h"
#include "tfplug/backend/ops/math.h"
#include "tfplug/backend/ops/matmul.h"
#include "tfplug/backend/ops/multinomial.h"
#include "tfplug/backend/ops/pad.h"
#include "tfplug/backend/ops/partition.h"
#include "tfplug/backend/ops/patches.h"
#include "tfplug/backend/ops/pool.h"
#include "tfplug/backend/ops/quantize.h"
#include "tfplug/backend/ops/random.h"
#include "tfplug/backend/ops/random_gamma.h"
#include "tfplug/backend/ops/reduction.h"
#include "tfplug/backend/ops/resize.h"
#include "tfplug/backend/ops/resource_slices.h"
#include "tfplug/backend/ops/scan.h"
#include "tfplug/backend/ops/scatter.h"
#include "tfplug/backend/ops/segment.h"
#include "tfplug/backend/ops/selection.h"
#include "tfplug/backend/ops/sequence.h"
#include "tfplug/backend/ops/slice.h"
#include "tfplug/backend/ops/softmax.h"
#include "tfplug/backend/ops/sparse.h"
#include "tfplug/backend/ops/sparse_segment.h"
#include "tfplug/backend/ops/sparse_tensor.h"
#include "tfplug/backend/ops/spatial.h"
#include "tfplug/backend/ops/training.h"
#include "tfplug/backend/ops/variables.h"
#include "tfplug/backend/ops/warp.h"
#include "tfplug/backend/ops/where.h"
#include "tfplug/backend/ops/window_argmax.h"
#include "tfplug/backend/registrar.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Registers every family of ops.
inline void AllOps(const Registrar& registrar) {
  ActivationOps(registrar);
  ArrayOps(registrar);
  BatchNormOps(registrar);
  BitsOps(registrar);
  CheckNumericsOps(registrar);
  ColorOps(registrar);
  ComplexOps(registrar);
  ConcatOps(registrar);
  ConvOps(registrar);
  ConvertOps(registrar);
  CountingOps(registrar);
  CropOps(registrar);
  CrossOps(registrar);
  DataFormatOps(registrar);
  DiagonalOps(registrar);
  EinsumOps(registrar);
  FourierOps(registrar);
  FusedOps(registrar);
  GatherOps(registrar);
  IdentityOps(registrar);
  MatMulOps(registrar);
  MathOps(registrar);
  MultinomialOps(registrar);
  PadOps(registrar);
  PartitionOps(registrar);
  PatchOps(registrar);
  PoolOps(registrar);
  QuantizeOps(registrar);
  RandomGammaOps(registrar);
  RandomOps(registrar);
  ReductionOps(registrar);
  ResizeOps(registrar);
  ResourceSliceOps(registrar);
  ScanOps(registrar);
  ScatterOps(registrar);
  SegmentOps(registrar);
  SelectionOps(registrar);
  SequenceOps(registrar);
  SliceOps(registrar);
  SoftmaxOps(registrar);
  SparseOps(registrar);
  SparseSegmentOps(registrar);
  SparseTensorOps(registrar);
  SpatialOps(registrar);
  TrainingOps(registrar);
  VariableOps(registrar);
  WarpOps(registrar);
  WhereOps(registrar);
  WindowArgmaxOps(registrar);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_OPS_ALL_H_
