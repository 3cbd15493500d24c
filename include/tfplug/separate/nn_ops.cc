// SPDX-License-Identifier: Apache-2.0
// Defines tfplug::AllNnOps of op_kernels/all_nn.h.
#include "tfplug/op_kernels/internal/all_nn.h"
