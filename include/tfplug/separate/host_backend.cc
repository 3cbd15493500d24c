// SPDX-License-Identifier: Apache-2.0
// Defines the host's primitives of host/host_backend.h, also for ops whose tensors are
// in host memory, and the optional primitives of primitives/backend.h.
#include "tfplug/host/internal/generic_host.h"
#include "tfplug/op_kernels/internal/use_host_backend.h"
#include "tfplug/primitives/internal/composed.h"
#include "tfplug/primitives/internal/composed_batch_norm.h"
#include "tfplug/primitives/internal/composed_conv.h"
#include "tfplug/primitives/internal/composed_fourier.h"
#include "tfplug/primitives/internal/composed_pool.h"
#include "tfplug/primitives/internal/composed_softmax.h"
