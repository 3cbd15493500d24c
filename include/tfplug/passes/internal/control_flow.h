// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_CONTROL_FLOW_H_
#define TFPLUG_PASSES_INTERNAL_CONTROL_FLOW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/node.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// The nodes that depend on a Switch or an Enter, which may run any number of
// times in a step. Conservatively includes the nodes after the Merge or Exit.
class Conditional {
 public:
  explicit Conditional(Graph& graph) : contains_(graph.max_id()) {
    std::vector<Node> pending;
    for (const char* op :
         {"Switch", "RefSwitch", "_SwitchN", "Enter", "RefEnter"}) {
      if (!graph.has_op(op)) continue;
      for (Node node : graph.nodes(op)) Add(node, pending);
    }
    while (!pending.empty()) {
      const Node node = pending.back();
      pending.pop_back();
      for (const Use& use : node.uses()) Add(use.node, pending);
    }
  }

  bool Contains(Node node) const { return contains_[node.id()]; }

 private:
  void Add(Node node, std::vector<Node>& pending) {
    if (contains_[node.id()]) return;
    contains_[node.id()] = true;
    pending.push_back(node);
  }

  std::vector<bool> contains_;
};

// Returns a key for the variable to which `resource` refers. Two resources have
// the same key if the graph shows that they refer to the same variable.
inline std::string VariableOf(Output resource) {
  // The bound is reached only in a cycle of Identity nodes.
  const uint32_t max_id =
      resource ? internal::Access::state(resource.node)->size() : 0;
  for (uint32_t i = 0; resource && i < max_id; ++i) {
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

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_CONTROL_FLOW_H_
