// SPDX-License-Identifier: Apache-2.0
#include <tfplug/backend/ops/gather.h>
#include <tfplug/backend/ops/resource_slices.h>
#include <tfplug/backend/ops/scan.h>
#include <tfplug/backend/ops/scatter.h>
#include <tfplug/backend/ops/segment.h>
#include <tfplug/backend/ops/sparse.h>
#include <tfplug/backend/ops/sparse_segment.h>
#include <tfplug/backend/ops/where.h>
#include <tfplug/backend/register.h>

#include "backend/backend.h"

TFPLUG_REGISTER_BACKEND(cpu_sim::Backend, tfplug::GatherOps,
                        tfplug::ResourceSliceOps, tfplug::ScanOps,
                        tfplug::ScatterOps, tfplug::SegmentOps,
                        tfplug::SparseOps, tfplug::SparseSegmentOps,
                        tfplug::WhereOps);
