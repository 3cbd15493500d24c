// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_CONTROL_FLOW_H_
#define TFPLUG_GRAPH_INTERNAL_CONTROL_FLOW_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/node.h"

namespace tfplug::internal {

// The nodes behind a Switch or an Enter: those may run not at all, or many
// times. Behind the Merge or Exit as well, to be on the safe side.
class Conditional {
 public:
  explicit Conditional(Graph& graph) : contains_(graph.max_id()) {
    std::vector<Node> rest;
    for (const char* op :
         {"Switch", "RefSwitch", "_SwitchN", "Enter", "RefEnter"}) {
      if (!graph.has_op(op)) continue;
      for (Node node : graph.nodes(op)) Add(node, rest);
    }
    while (!rest.empty()) {
      const Node node = rest.back();
      rest.pop_back();
      for (const Use& use : node.uses()) Add(use.node, rest);
    }
  }

  bool Contains(Node node) const { return contains_[node.id()]; }

 private:
  void Add(Node node, std::vector<Node>& rest) {
    if (contains_[node.id()]) return;
    contains_[node.id()] = true;
    rest.push_back(node);
  }

  std::vector<bool> contains_;
};

// A name for the variable behind a resource: the same for the same one, as far
// as the graph tells.
inline std::string VariableOf(Output resource) {
  // No chain of Identities is longer than the graph; this also ends in a cycle.
  for (uint32_t i = 0; resource && i < resource.node.graph()->size(); ++i) {
    if (resource.node.op() != "Identity") break;
    resource = resource.node.input(0);
  }
  if (!resource) return "";
  if (resource.node.op() == "VarHandleOp") {
    const auto shared = resource.node.GetAttr<std::string>("shared_name");
    if (shared.ok() && !shared->empty()) {
      return absl::StrCat("shared ", *shared);
    }
  }
  return absl::StrCat(resource.node.id(), ":", resource.port);
}

}  // namespace tfplug::internal

#endif  // TFPLUG_GRAPH_INTERNAL_CONTROL_FLOW_H_
