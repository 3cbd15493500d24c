// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_REPLACE_PAIR_H_
#define TFPLUG_PASSES_INTERNAL_REPLACE_PAIR_H_

#include <vector>

#include "absl/status/status.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/pass_context.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// Replaces two nodes, of which `outer` is the only user of `inner`, with the
// new node `fused`, which has their data inputs and attributes already. It gets
// the control inputs of both, and the users and properties of `outer`. Removes
// `outer`; the caller removes `inner`.
inline absl::Status ReplacePair(Graph& graph, const PassContext& context,
                                Node inner, Node outer, Node fused) {
  for (const Node node : {inner, outer}) {
    std::vector<Node> controls;
    for (const Node control : node.controls()) {
      if (control) controls.push_back(control);
    }
    for (const Node control : controls) {
      TFPLUG_RETURN_IF_ERROR(fused.AddControl(control));
    }
  }
  const auto properties = context.properties().GetOutputs(outer.name());
  if (properties.ok()) {
    context.properties().SetOutputs(fused.name(),
                                    {properties->begin(), properties->end()});
  }
  TFPLUG_RETURN_IF_ERROR(graph.ReplaceNode(outer, fused));
  return graph.RemoveNode(outer);
}

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_REPLACE_PAIR_H_
