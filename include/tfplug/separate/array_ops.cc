// SPDX-License-Identifier: Apache-2.0
// Defines tfplug::AllArrayOps of op_kernels/all_array.h.
#define TFPLUG_SEPARATE_PART
#include "tfplug/op_kernels/internal/all_array.h"
