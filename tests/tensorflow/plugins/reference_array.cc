// SPDX-License-Identifier: Apache-2.0
#include "reference_backend.h"
#include "tfplug/op_kernels/all_array.h"
#include "tfplug/op_kernels/register.h"

TFPLUG_REGISTER_BACKEND(reference::Backend, tfplug::AllArrayOps);
