// SPDX-License-Identifier: Apache-2.0
// Defines the registration of graph passes, and the default ones.
#include "tfplug/passes/internal/append_passes.h"
#include "tfplug/passes/internal/init_optimizer.h"
