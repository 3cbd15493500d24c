// SPDX-License-Identifier: Apache-2.0
// Defines tfplug::AllMathOps of op_kernels/all_math.h.
#define TFPLUG_SEPARATE_PART
#include "tfplug/op_kernels/internal/all_math.h"
