// SPDX-License-Identifier: Apache-2.0
#include <tfplug/graph_pass.h>

#include "passes/fusion.h"

// Runs between tfplug's default passes.
TFPLUG_REGISTER_GRAPH_PASSES("SIM", cpu_sim::Fusion);
