// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_PASS_H_
#define TFPLUG_GRAPH_PASS_H_

// Graph passes and their registration. tfplug/patterns/rules.h adds patterns
// and rules, and tfplug/passes/ contains ready-made passes.
#include "tfplug/graph/function_library.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_item.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/graph_properties.h"
#include "tfplug/graph/node.h"
#include "tfplug/graph/optimizer_settings.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/passes/register_graph_passes.h"

#endif  // TFPLUG_GRAPH_PASS_H_
