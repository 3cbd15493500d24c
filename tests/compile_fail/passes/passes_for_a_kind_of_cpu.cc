// SPDX-License-Identifier: Apache-2.0
// expect: no plug-in's device type contains
#include <tfplug/graph_pass.h>

TFPLUG_REGISTER_GRAPH_PASSES("MY_CPU");
