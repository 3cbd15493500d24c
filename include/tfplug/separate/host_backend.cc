// SPDX-License-Identifier: Apache-2.0
// Defines the host's primitives of host/host_backend.h, also for ops whose tensors are
// in host memory.
#include "tfplug/host/internal/generic_host.h"
#include "tfplug/op_kernels/internal/use_host_backend.h"
