// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_FUSED_USERS_H_
#define TFPLUG_PASSES_INTERNAL_FUSED_USERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/ir/compose.h"
#include "tfplug/ir/serialize.h"
#include "tfplug/kernel/fused_map_ops.h"
#include "tfplug/passes/internal/fusable_nodes.h"
#include "tfplug/passes/internal/fused_cluster.h"
#include "tfplug/passes/internal/regions.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// Fuses a matrix product or a reduction with the element-wise ops that use it.
// The ops can become one with it if they are one cluster and nothing else uses
// the node. No cycle can be created: all paths from the node lead through the
// cluster.
class FusedUsers {
 public:
  FusedUsers(Graph& graph, const PassContext& context,
             const FusableNodes& nodes)
      : graph_(graph), context_(context), nodes_(nodes) {}

  // Returns an element-wise op that uses the node, or none.
  Node Any(Node node) const {
    Node user;
    for (const Use& use : node.uses()) {
      if (!use.is_control() && nodes_.Has(use.node)) user = use.node;
    }
    return user;
  }

  // Returns null if the node may be fused with its users, and otherwise the
  // reason. Call it before the graph is changed.
  const char* WhyNot(Node node, const Regions& regions) const {
    if (context_.IsPreserved(node.name())) return "its value is fetched";
    for (const Use& use : node.uses()) {
      if (use.is_control() || !nodes_.Has(use.node)) {
        return "other nodes use it as well";
      }
      if (use.node.device() != node.device()) return "they are on two devices";
      if (regions.of(use.node) != regions.of(node)) {
        return "they run in different branches or loops";
      }
      if (AreDifferent(nodes_.ShapeOf(node), nodes_.ShapeOf(use.node))) {
        return "its input is broadcast";
      }
    }
    return nullptr;
  }

  // Returns the only user, a fused map, after the clusters were replaced. If
  // there is none, calls log(node, user, reason) and returns no node.
  template <class Log>
  absl::StatusOr<Node> Find(Node node, Log log) const {
    Node user;
    for (const Use& use : node.uses()) {
      if (user && user != use.node) {
        log(node, use.node, "it has several users, which are not one cluster");
        return Node();
      }
      user = use.node;
    }
    if (user && IsFusable(user)) {  // a cluster of one op
      const std::vector<Node> members = {user};
      TFPLUG_ASSIGN_OR_RETURN(
          user, FusedCluster(graph_, context_, nodes_, members).Replace());
    }
    if (user && user.op() == kFusedMapOp && IndexOf(node, user) >= 0) {
      return user;
    }
    log(node, user, "its user is fused with something else");
    return Node();
  }

  // Returns the input of a fused map that is the value of `node`, or -1.
  static int IndexOf(Node node, Node map) {
    for (const Input& input : map.inputs()) {
      if (input.from.node == node) return input.index;
    }
    return -1;
  }

  // Sets the attributes of `fused` to the cluster of `map`, of which input
  // `first` becomes the first input. Returns the other inputs.
  static absl::StatusOr<std::vector<Output>> SetCluster(
      int first, Node map, Node fused, const FusedMapAttrs& names) {
    std::vector<Output> others;
    for (const Input& input : map.inputs()) {
      if (input.index != first) others.push_back(input.from);
    }
    TFPLUG_ASSIGN_OR_RETURN(auto types,
                            map.GetAttr<std::vector<DataType>>("Tin"));
    types.erase(types.begin() + first);
    TFPLUG_ASSIGN_OR_RETURN(const auto text,
                            map.GetAttr<std::string>("expression"));
    TFPLUG_ASSIGN_OR_RETURN(Expression expression, ParseExpression(text));
    TFPLUG_ASSIGN_OR_RETURN(expression, ir::WithInputFirst(expression, first));
    fused.SetAttr(names.types, types);
    fused.SetAttr(names.expression, Serialize(expression));
    fused.SetAttr(names.checks, *map.GetAttr<std::vector<int64_t>>("checks"));
    fused.SetAttr("Tout", *map.GetAttr<std::vector<DataType>>("Tout"));
    return others;
  }

 private:
  // Returns whether the node is one of the fusable ones. New nodes may have the ids of
  // those that were replaced.
  bool IsFusable(Node node) const {
    return nodes_.Has(node) && node.op() == nodes_.row(node).op.name;
  }

  Graph& graph_;
  const PassContext& context_;
  const FusableNodes& nodes_;
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_FUSED_USERS_H_
