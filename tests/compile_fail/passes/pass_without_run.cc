// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: a pass does not override Run(Graph&, const PassContext&)
#include <tfplug/graph_pass.h>

struct Pass : tfplug::GraphPass {};
TFPLUG_REGISTER_GRAPH_PASSES("MINIMAL", Pass);
