// SPDX-License-Identifier: Apache-2.0
// Defines the optional primitives of primitives/backend.h, and has ops whose tensors are
// in host memory use the host's.
#include "tfplug/op_kernels/internal/use_host_backend.h"
#include "tfplug/primitives/internal/composed.h"
#include "tfplug/primitives/internal/composed_batch_norm.h"
#include "tfplug/primitives/internal/composed_conv.h"
#include "tfplug/primitives/internal/composed_fourier.h"
#include "tfplug/primitives/internal/composed_pool.h"
#include "tfplug/primitives/internal/composed_softmax.h"
