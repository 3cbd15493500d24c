// SPDX-License-Identifier: Apache-2.0
#include <tfplug/backend/ops/einsum.h>
#include <tfplug/backend/ops/matmul.h>
#include <tfplug/backend/ops/random.h>
#include <tfplug/backend/ops/reduction.h>
#include <tfplug/backend/ops/softmax.h>
#include <tfplug/backend/register.h>

#include "backend/backend.h"

TFPLUG_REGISTER_BACKEND(cpu_sim::Backend, tfplug::EinsumOps, tfplug::MatMulOps,
                        tfplug::RandomOps, tfplug::ReductionOps,
                        tfplug::SoftmaxOps);
