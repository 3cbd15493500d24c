// SPDX-License-Identifier: Apache-2.0
// Defines tfplug::AllMathOps of op_kernels/all_math.h.
#include "tfplug/op_kernels/internal/all_math.h"
