// SPDX-License-Identifier: Apache-2.0
// Defines the host's primitives, for ops whose tensors are in host memory.
#include "tfplug/op_kernels/internal/use_host_backend.h"
