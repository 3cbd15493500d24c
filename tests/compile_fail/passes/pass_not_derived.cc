// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: a graph pass must be a class publicly derived from tfplug::GraphPass
#include <tfplug/graph_pass.h>

struct Pass {};
TFPLUG_REGISTER_GRAPH_PASSES("MINIMAL", Pass);
