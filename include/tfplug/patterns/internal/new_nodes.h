// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_NEW_NODES_H_
#define TFPLUG_PATTERNS_INTERNAL_NEW_NODES_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/ranges.h"
#include "tfplug/patterns/internal/match.h"
#include "tfplug/patterns/internal/plan.h"
#include "tfplug/patterns/internal/replacement.h"

#pragma GCC visibility push(hidden)

namespace tfplug::patterns_internal {

// Adds the new nodes of a replacement to the graph, each one once.
class NewNodes {
 public:
  explicit NewNodes(Graph& graph) : graph_(graph) {}

  void Start(const PatternMatch& match, const PatternPlan& plan) {
    match_ = &match;
    plan_ = &plan;
    made_.clear();
  }
  // Records that the root became the node of `tree`.
  void Add(const ReplacementTree& tree, const Node& root) {
    made_.emplace_back(&tree, root);
  }

  // Returns the value of a source, and adds its node if necessary.
  absl::StatusOr<Output> Make(const ReplacementSource& source) {
    const ReplacementTree& tree = *source.tree;
    if (tree.kind == Kind::kMatched) return match_->FirstValue(tree.matched);
    for (const auto& [made, node] : made_) {
      if (made == &tree) return Output{node, source.port};
    }
    TFPLUG_ASSIGN_OR_RETURN(const Node node, tree.kind == Kind::kConst
                                                 ? AddConst(tree)
                                                 : AddNode(tree));
    made_.emplace_back(&tree, node);
    return Output{node, source.port};
  }
  absl::StatusOr<std::vector<Output>> AddInputs(const ReplacementTree& tree) {
    std::vector<Output> inputs;
    for (const ReplacementSource& input : tree.inputs) {
      if (input.tree->kind == Kind::kMatched) {
        // None if this variant does not contain the pattern.
        match_->ForEachValue(input.tree->matched, [&](const Output& value) {
          if (value.node) inputs.push_back(value);
        });
        continue;
      }
      TFPLUG_ASSIGN_OR_RETURN(const Output value, Make(input));
      inputs.push_back(value);
    }
    return inputs;
  }
  void SetAttrs(const ReplacementTree& tree, const Node& node) {
    for (const auto& [name, value] : plan_->AttrsOf(tree)) {
      node.SetRawAttr(name, value);
    }
  }

 private:
  using Kind = ReplacementTree::Kind;

  absl::StatusOr<Node> AddNode(const ReplacementTree& tree) {
    TFPLUG_ASSIGN_OR_RETURN(const std::vector<Output> inputs, AddInputs(tree));
    TFPLUG_ASSIGN_OR_RETURN(Node node, AddNode(tree.op));
    TFPLUG_RETURN_IF_ERROR(node.SetInputs(inputs));
    SetAttrs(tree, node);
    return node;
  }
  absl::StatusOr<Node> AddConst(const ReplacementTree& tree) {
    TFPLUG_ASSIGN_OR_RETURN(Node node, AddNode("Const"));
    plan_->ConstantOf(tree).Write(node);
    // In a loop's body, a constant has a control input from the loop.
    for (size_t i = 1; i < match_->size(); ++i) {
      if (!match_->IsNode(i)) continue;
      const Node& matched = match_->output(i).node;
      if (matched.op() == "Const") {
        TFPLUG_RETURN_IF_ERROR(CopyControls(matched, node));
      }
    }
    if (node.num_controls() > 0 || !graph_.has_op("Enter")) return node;
    for (size_t i = 1; i < match_->size(); ++i) {
      const Output& value = match_->output(i);
      if (match_->IsNode(i) || !value) continue;  // nodes may be removed
      if (value.node.op() != "Const") {
        TFPLUG_RETURN_IF_ERROR(node.AddControl(value.node));
        break;
      }
      TFPLUG_RETURN_IF_ERROR(CopyControls(value.node, node));
    }
    return node;
  }
  static absl::Status CopyControls(Node from, Node to) {
    for (const Node control : from.controls()) {
      TFPLUG_RETURN_IF_ERROR(to.AddControl(control));
    }
    return absl::OkStatus();
  }
  absl::StatusOr<Node> AddNode(const std::string& op) {
    const std::string prefix = std::string(match_->root().name()) + "/" + op;
    TFPLUG_ASSIGN_OR_RETURN(Node node,
                            graph_.AddNode(graph_.UniqueName(prefix), op));
    node.SetDevice(match_->root().device());
    return node;
  }

  Graph& graph_;
  const PatternMatch* match_ = nullptr;
  const PatternPlan* plan_ = nullptr;
  std::vector<std::pair<const ReplacementTree*, Node>> made_;
};

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_NEW_NODES_H_
