// SPDX-License-Identifier: Apache-2.0
#include <tfplug/backend/ops/array.h>
#include <tfplug/backend/ops/concat.h>
#include <tfplug/backend/ops/gather.h>
#include <tfplug/backend/ops/pad.h>
#include <tfplug/backend/ops/random.h>
#include <tfplug/backend/ops/reduction.h>
#include <tfplug/backend/ops/scan.h>
#include <tfplug/backend/ops/scatter.h>
#include <tfplug/backend/ops/segment.h>
#include <tfplug/backend/ops/slice.h>
#include <tfplug/backend/ops/variables.h>
#include <tfplug/backend/ops/where.h>
#include <tfplug/backend/register.h>

#include "backend.h"

TFPLUG_REGISTER_BACKEND(opencl::Backend, tfplug::ArrayOps, tfplug::ConcatOps,
                        tfplug::GatherOps, tfplug::PadOps, tfplug::RandomOps,
                        tfplug::ReductionOps, tfplug::ScanOps,
                        tfplug::ScatterOps, tfplug::SegmentOps,
                        tfplug::SliceOps, tfplug::VariableOps,
                        tfplug::WhereOps);

// int32 tensors of shapes are in host memory.
TFPLUG_REGISTER_HOST_KERNELS(tfplug::ArrayOps, tfplug::ReductionOps);
