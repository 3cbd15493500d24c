// SPDX-License-Identifier: Apache-2.0
#include "plain_c.h"
#include "tfplug/op_kernels/all.h"
#include "tfplug/op_kernels/array.h"
#include "tfplug/op_kernels/reduction.h"
#include "tfplug/op_kernels/register.h"

TFPLUG_REGISTER_BACKEND(plain_c::Backend, tfplug::AllOps);
TFPLUG_REGISTER_HOST_KERNELS(tfplug::ArrayOps, tfplug::ReductionOps);
