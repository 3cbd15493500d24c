// SPDX-License-Identifier: Apache-2.0
// Defines tfplug::AllNnOps of op_kernels/all_nn.h.
#define TFPLUG_SEPARATE_PART
#include "tfplug/op_kernels/internal/all_nn.h"
