// SPDX-License-Identifier: Apache-2.0
#include "tfplug/op_kernels/array.h"
#include "tfplug/op_kernels/gather.h"
#include "tfplug/op_kernels/pad.h"
#include "tfplug/op_kernels/reduction.h"
#include "tfplug/op_kernels/register.h"
#include "tfplug/op_kernels/scan.h"

TFPLUG_REGISTER_HOST_KERNELS(tfplug::ArrayOps, tfplug::GatherOps,
                             tfplug::PadOps, tfplug::ReductionOps,
                             tfplug::ScanOps);
