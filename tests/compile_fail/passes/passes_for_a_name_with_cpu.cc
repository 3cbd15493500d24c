// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: a plug-in's device type must not contain
#include <tfplug/graph_pass.h>

TFPLUG_REGISTER_GRAPH_PASSES("MY_CPU");
