// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_H_
#define TFPLUG_GRAPH_H_

// Everything for passes that rewrite TensorFlow's graphs (RFC 318), and their
// registration. Patterns: graph/pattern_rule.h.
#include "tfplug/graph/function_library.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_item.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/graph_properties.h"
#include "tfplug/graph/node.h"
#include "tfplug/graph/optimizer_settings.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/register_graph.h"

#endif  // TFPLUG_GRAPH_H_
