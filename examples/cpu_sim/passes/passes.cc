// SPDX-License-Identifier: Apache-2.0
#include <tfplug/graph_pass.h>

#include "passes/bool_lists.h"
#include "passes/fusion.h"
#include "passes/list_gradients.h"

// These run after tfplug's default passes.
TFPLUG_REGISTER_GRAPH_PASSES("SIM", cpu_sim::Fusion, cpu_sim::BoolLists,
                             cpu_sim::ListGradients);
