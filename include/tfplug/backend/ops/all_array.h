// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_ALL_ARRAY_H_
#define TFPLUG_BACKEND_OPS_ALL_ARRAY_H_

#include "tfplug/backend/ops/array.h"
#include "tfplug/backend/ops/concat.h"
#include "tfplug/backend/ops/data_format.h"
#include "tfplug/backend/ops/diagonal.h"
#include "tfplug/backend/ops/gather.h"
#include "tfplug/backend/ops/hash.h"
#include "tfplug/backend/ops/identity.h"
#include "tfplug/backend/ops/pad.h"
#include "tfplug/backend/ops/partition.h"
#include "tfplug/backend/ops/resource_slices.h"
#include "tfplug/backend/ops/scan.h"
#include "tfplug/backend/ops/scatter.h"
#include "tfplug/backend/ops/segment.h"
#include "tfplug/backend/ops/selection.h"
#include "tfplug/backend/ops/sequence.h"
#include "tfplug/backend/ops/slice.h"
#include "tfplug/backend/ops/sparse.h"
#include "tfplug/backend/ops/sparse_rows.h"
#include "tfplug/backend/ops/sparse_segment.h"
#include "tfplug/backend/ops/sparse_tensor.h"
#include "tfplug/backend/ops/sync.h"
#include "tfplug/backend/ops/tensor_lists.h"
#include "tfplug/backend/ops/variables.h"
#include "tfplug/backend/ops/where.h"
#include "tfplug/backend/registrar.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Registers the families of arrays: shapes, slices, indices, sorting, lists and
// variables; and the op that waits for the device.
inline void AllArrayOps(const Registrar& registrar) {
  ArrayOps(registrar);
  ConcatOps(registrar);
  DataFormatOps(registrar);
  DiagonalOps(registrar);
  GatherOps(registrar);
  HashOps(registrar);
  IdentityOps(registrar);
  PadOps(registrar);
  PartitionOps(registrar);
  ResourceSliceOps(registrar);
  ScanOps(registrar);
  ScatterOps(registrar);
  SegmentOps(registrar);
  SelectionOps(registrar);
  SequenceOps(registrar);
  SliceOps(registrar);
  SparseOps(registrar);
  SparseRowOps(registrar);
  SparseSegmentOps(registrar);
  SparseTensorOps(registrar);
  SyncOps(registrar);
  TensorListOps(registrar);
  VariableOps(registrar);
  WhereOps(registrar);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_OPS_ALL_ARRAY_H_
