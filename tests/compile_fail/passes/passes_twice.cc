// SPDX-License-Identifier: Apache-2.0
// expect: TFPLUG_REGISTER_GRAPH_PASSES_is_allowed_only_once_in_a_library
#include <tfplug/graph_pass.h>

TFPLUG_REGISTER_GRAPH_PASSES("MINIMAL");
TFPLUG_REGISTER_GRAPH_PASSES("MINIMAL");
