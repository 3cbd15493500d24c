// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_ALL_ARRAY_H_
#define TFPLUG_OP_KERNELS_INTERNAL_ALL_ARRAY_H_

#include "tfplug/base/separate.h"
#include "tfplug/op_kernels/array.h"
#include "tfplug/op_kernels/concat.h"
#include "tfplug/op_kernels/data_format.h"
#include "tfplug/op_kernels/diagonal.h"
#include "tfplug/op_kernels/gather.h"
#include "tfplug/op_kernels/hash.h"
#include "tfplug/op_kernels/identity.h"
#include "tfplug/op_kernels/pad.h"
#include "tfplug/op_kernels/partition.h"
#include "tfplug/op_kernels/ragged.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/reshape.h"
#include "tfplug/op_kernels/resource_slices.h"
#include "tfplug/op_kernels/scan.h"
#include "tfplug/op_kernels/scatter.h"
#include "tfplug/op_kernels/segment.h"
#include "tfplug/op_kernels/selection.h"
#include "tfplug/op_kernels/sequence.h"
#include "tfplug/op_kernels/serialize_sparse.h"
#include "tfplug/op_kernels/slice.h"
#include "tfplug/op_kernels/sparse.h"
#include "tfplug/op_kernels/sparse_math.h"
#include "tfplug/op_kernels/sparse_rows.h"
#include "tfplug/op_kernels/sparse_segment.h"
#include "tfplug/op_kernels/sparse_tensor.h"
#include "tfplug/op_kernels/sync.h"
#include "tfplug/op_kernels/tensor_lists.h"
#include "tfplug/op_kernels/update_slice.h"
#include "tfplug/op_kernels/variables.h"
#include "tfplug/op_kernels/where.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

TFPLUG_SEPARABLE void AllArrayOps(const Registrar& registrar) {
  ArrayOps(registrar);
  ConcatOps(registrar);
  DataFormatOps(registrar);
  DiagonalOps(registrar);
  GatherOps(registrar);
  HashOps(registrar);
  IdentityOps(registrar);
  PadOps(registrar);
  PartitionOps(registrar);
  RaggedOps(registrar);
  ReshapeOps(registrar);
  ResourceSliceOps(registrar);
  ScanOps(registrar);
  ScatterOps(registrar);
  SegmentOps(registrar);
  SelectionOps(registrar);
  SequenceOps(registrar);
  SerializeSparseOps(registrar);
  SliceOps(registrar);
  SparseMathOps(registrar);
  SparseOps(registrar);
  SparseRowOps(registrar);
  SparseSegmentOps(registrar);
  SparseTensorOps(registrar);
  SyncOps(registrar);
  TensorListOps(registrar);
  UpdateSliceOps(registrar);
  VariableOps(registrar);
  WhereOps(registrar);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_ALL_ARRAY_H_
