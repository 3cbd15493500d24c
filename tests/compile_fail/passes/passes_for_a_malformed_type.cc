// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: a device type must begin with a capital letter
#include <tfplug/graph_pass.h>

TFPLUG_REGISTER_GRAPH_PASSES("sim");
