// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_EDITOR_H_
#define TFPLUG_PATTERNS_INTERNAL_EDITOR_H_

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/ranges.h"
#include "tfplug/patterns/internal/infer.h"
#include "tfplug/patterns/internal/match.h"
#include "tfplug/patterns/internal/new_nodes.h"
#include "tfplug/patterns/internal/plan.h"
#include "tfplug/patterns/internal/replacement.h"

#pragma GCC visibility push(hidden)

namespace tfplug::patterns_internal {

// Replaces matches as planned.
class PatternEditor {
 public:
  PatternEditor(Graph& graph, const PassContext& context)
      : graph_(graph), context_(context), made_(graph) {}

  // After an error, the graph may be partly edited.
  absl::Status Replace(const RuleData& rule, const PatternMatch& match,
                       const PatternPlan& plan) {
    match_ = &match;
    plan_ = &plan;
    root_ = match.root();
    made_.Start(match, plan);
    CollectControls();
    CollectResults(rule);
    const ReplacementTree& tree = *rule.replacement.tree;
    if (tree.kind == ReplacementTree::Kind::kMatched) {
      TFPLUG_RETURN_IF_ERROR(
          ReplaceRootByValue(match.FirstValue(tree.matched)));
    } else {
      TFPLUG_RETURN_IF_ERROR(ReplaceRootByNode(rule.replacement));
    }
    TFPLUG_RETURN_IF_ERROR(ReplaceResults());
    return RemoveRest();
  }

 private:
  using Kind = ReplacementTree::Kind;

  // An output that is replaced besides the root's, and its uses.
  struct Result {
    size_t slot;
    int port;
    const ReplacementSource* source;
    std::optional<DataType> type;
    std::vector<Use> uses;
  };

  bool IsMatchedNode(const Node& node) const {
    return match_->AnyOf(node, [this](size_t i) { return match_->IsNode(i); });
  }
  bool IsConsumed(const Node& node) const {
    return match_->AnyOf(
        node, [this](size_t i) { return i == 0 || match_->IsConsumed(i); });
  }

  // Collects the matched nodes' control inputs from outside the match.
  void CollectControls() {
    controls_.clear();
    for (size_t i = 1; i < match_->size(); ++i) {
      if (!match_->IsNode(i)) continue;
      const Node& node = match_->output(i).node;
      for (const Node control : node.controls()) {
        if (!IsMatchedNode(control)) controls_.push_back(control);
      }
    }
    if (controls_.size() < 2) return;
    size_t size = 0;  // Keep the first of equal nodes.
    for (const Node& control : controls_) {
      const auto end = controls_.begin() + static_cast<std::ptrdiff_t>(size);
      if (std::find(controls_.begin(), end, control) == end) {
        controls_[size++] = control;
      }
    }
    controls_.resize(size);
  }

  // Collects the results, and their uses before anything is edited.
  void CollectResults(const RuleData& rule) {
    results_.clear();
    const auto& results = match_->variant().results;
    for (size_t i = 0; i < results.size(); ++i) {
      const auto [slot, port] = results[i];
      if (slot < 0) continue;
      Result& result = results_.emplace_back();
      result.slot = static_cast<size_t>(slot);
      result.port = port;
      result.source = &rule.result_replacements[i];
      const Node& node = match_->output(result.slot).node;
      result.type = FindType({node, port}, context_);
      for (const Use use : node.uses(port)) {
        if (!IsConsumed(use.node)) result.uses.push_back(use);
      }
    }
  }

  // Replaces the root by a matched value: removes the root, or turns it into an
  // Identity if its name or its control edges must remain.
  absl::Status ReplaceRootByValue(Output value) {
    const int port = match_->variant().root_port;
    if (root_.num_controls() == 0 && controls_.empty() && !MustRemain(root_)) {
      TFPLUG_RETURN_IF_ERROR(graph_.ReplaceUses(Output{root_, port}, value));
      is_root_removed_ = true;
      return results_.empty() ? graph_.RemoveNode(root_) : absl::OkStatus();
    }
    TFPLUG_RETURN_IF_ERROR(
        MakeIdentity(root_, value, FindType({root_, port}, context_)));
    is_root_removed_ = false;
    return SetControls();
  }
  // Returns whether the node's name must remain in the graph.
  bool MustRemain(const Node& node) const {
    for (const Use use : node.uses(kControl)) {
      if (!IsConsumed(use.node)) return true;
    }
    return context_.IsPreserved(node.name());
  }
  absl::Status MakeIdentity(const Node& node, Output value,
                            std::optional<DataType> type) {
    if (!type.has_value()) {
      return absl::InternalError("the type of an output of " + Describe(node) +
                                 " is unknown");
    }
    node.SetOp("Identity");
    TFPLUG_RETURN_IF_ERROR(node.SetInputs({value}));
    ClearAttrs(node);
    node.SetAttr("T", *type);
    return absl::OkStatus();
  }

  // Edits the root so that it becomes the new node.
  absl::Status ReplaceRootByNode(const ReplacementSource& source) {
    const ReplacementTree& tree = *source.tree;
    is_root_removed_ = false;
    TFPLUG_ASSIGN_OR_RETURN(std::vector<Output> inputs, made_.AddInputs(tree));
    TFPLUG_RETURN_IF_ERROR(root_.SetInputs(inputs));
    root_.SetOp(tree.op);
    ClearAttrs(root_);
    if (tree.kind == Kind::kConst) {
      plan_->ConstantOf(tree).Write(root_);
    } else {
      made_.SetAttrs(tree, root_);
    }
    made_.Add(tree, root_);
    const int port = match_->variant().root_port;
    if (port != source.port) {
      std::vector<Use> uses;
      for (const Use use : root_.uses(port)) uses.push_back(use);
      for (const Use& use : uses) {
        TFPLUG_RETURN_IF_ERROR(
            use.node.SetInput(use.input, Output{root_, source.port}));
      }
    }
    return SetControls();
  }

  // Replaces the other results. Their nodes are removed, or become Identities.
  absl::Status ReplaceResults() {
    for (Result& result : results_) {
      const Node& node = match_->output(result.slot).node;
      const bool is_kept =
          std::find(kept_.begin(), kept_.end(), node) != kept_.end();
      const bool remains = result.slot != 0 && !is_kept && MustRemain(node);
      if (result.uses.empty() && !remains) continue;
      TFPLUG_ASSIGN_OR_RETURN(const Output value, made_.Make(*result.source));
      for (const Use& use : result.uses) {
        TFPLUG_RETURN_IF_ERROR(use.node.SetInput(use.input, value));
      }
      if (remains) {
        TFPLUG_RETURN_IF_ERROR(MakeIdentity(node, value, result.type));
        kept_.push_back(node);
      }
    }
    return absl::OkStatus();
  }

  // Removes a node's attributes, except those whose names begin with an
  // underscore (_class, ...).
  void ClearAttrs(const Node& node) {
    names_.clear();
    internal::Access::state(node)->ForEachAttr(
        node.id(), [this](absl::string_view name, absl::string_view) {
          if (name.empty() || name[0] != '_') names_.push_back(name);
        });
    for (absl::string_view name : names_) node.RemoveAttr(name);
  }
  absl::Status SetControls() {
    for (int c = root_.num_controls(); c-- > 0;) {
      const Node control = root_.control(c);
      if (control != root_ && IsMatchedNode(control)) {
        TFPLUG_RETURN_IF_ERROR(root_.RemoveControl(control));
      } else {
        const auto found =
            std::find(controls_.begin(), controls_.end(), control);
        if (found != controls_.end()) controls_.erase(found);
      }
    }
    for (const Node& control : controls_) {
      TFPLUG_RETURN_IF_ERROR(root_.AddControl(control));
    }
    return absl::OkStatus();
  }

  // Removes the matched nodes that no longer have uses, users before their
  // inputs. INTERNAL if a consumed node still has uses.
  absl::Status RemoveRest() {
    rest_.clear();
    if (is_root_removed_ && !root_.removed()) rest_.push_back(0);
    for (size_t i = 1; i < match_->size(); ++i) {
      if (match_->IsNode(i)) rest_.push_back(i);
    }
    for (size_t before = rest_.size() + 1; rest_.size() < before;) {
      before = rest_.size();
      size_t left = 0;
      for (const size_t i : rest_) {
        const Node node = match_->output(i).node;
        if (node.removed()) continue;
        if (node.num_uses() > 0 || context_.IsPreserved(node.name())) {
          rest_[left++] = i;
          continue;
        }
        TFPLUG_RETURN_IF_ERROR(graph_.RemoveNode(node));
      }
      rest_.resize(left);
    }
    for (const size_t i : rest_) {
      const Node& node = match_->output(i).node;
      const bool is_kept =
          std::find(kept_.begin(), kept_.end(), node) != kept_.end();
      if (match_->IsConsumed(i) && !is_kept) {
        return absl::InternalError(
            "the replacement still uses '" + std::string(node.name()) +
            "', which the rule removes; mark it MayHaveOtherUses(), or use "
            "its inputs");
      }
    }
    kept_.clear();
    return absl::OkStatus();
  }

  Graph& graph_;
  const PassContext& context_;
  const PatternMatch* match_ = nullptr;
  const PatternPlan* plan_ = nullptr;
  Node root_;
  bool is_root_removed_ = false;
  std::vector<Result> results_;
  NewNodes made_;
  std::vector<Node> controls_;
  std::vector<Node> kept_;                // Results that became Identities.
  std::vector<size_t> rest_;              // Scratch: indices of matched nodes.
  std::vector<absl::string_view> names_;  // Scratch: names of attributes.
};

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_EDITOR_H_
