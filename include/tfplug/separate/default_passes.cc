// SPDX-License-Identifier: Apache-2.0
// Defines the registration of graph passes, the default ones, and the tables of graphs.
#include "tfplug/graph/internal/graph_tables.h"
#include "tfplug/passes/internal/append_passes.h"
#include "tfplug/passes/internal/init_optimizer.h"
