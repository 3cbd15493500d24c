// SPDX-License-Identifier: Apache-2.0
#include "reference_backend.h"
#include "tfplug/backend/ops/array.h"
#include "tfplug/backend/ops/indexing.h"
#include "tfplug/backend/ops/random.h"
#include "tfplug/backend/ops/reduction.h"
#include "tfplug/backend/ops/variables.h"
#include "tfplug/backend/register.h"

TFPLUG_REGISTER_BACKEND(reference::Backend, tfplug::ArrayOps,
                        tfplug::IndexingOps, tfplug::RandomOps,
                        tfplug::ReductionOps, tfplug::VariableOps);
