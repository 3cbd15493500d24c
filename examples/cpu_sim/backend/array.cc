// SPDX-License-Identifier: Apache-2.0
#include <tfplug/backend/ops/array.h>
#include <tfplug/backend/ops/concat.h>
#include <tfplug/backend/ops/diagonal.h>
#include <tfplug/backend/ops/pad.h>
#include <tfplug/backend/ops/sequence.h>
#include <tfplug/backend/ops/slice.h>
#include <tfplug/backend/ops/spatial.h>
#include <tfplug/backend/register.h>

#include "backend/backend.h"

TFPLUG_REGISTER_BACKEND(cpu_sim::Backend, tfplug::ArrayOps, tfplug::ConcatOps,
                        tfplug::DiagonalOps, tfplug::PadOps,
                        tfplug::SequenceOps, tfplug::SliceOps,
                        tfplug::SpatialOps);
