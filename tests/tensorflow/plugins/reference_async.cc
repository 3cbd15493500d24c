// SPDX-License-Identifier: Apache-2.0
#include "reference_backend.h"
#include "tfplug/backend/ops/multinomial.h"
#include "tfplug/backend/ops/partition.h"
#include "tfplug/backend/ops/segment.h"
#include "tfplug/backend/ops/sparse_segment.h"
#include "tfplug/backend/ops/where.h"
#include "tfplug/backend/register.h"

TFPLUG_REGISTER_BACKEND(reference::Backend, tfplug::MultinomialOps,
                        tfplug::PartitionOps, tfplug::SegmentOps,
                        tfplug::SparseSegmentOps, tfplug::WhereOps);
