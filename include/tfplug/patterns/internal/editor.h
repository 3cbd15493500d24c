// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_EDITOR_H_
#define TFPLUG_PATTERNS_INTERNAL_EDITOR_H_

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/patterns/internal/plan.h"
#include "tfplug/patterns/internal/replacement.h"
#include "tfplug/patterns/internal/variant.h"
#include "tfplug/patterns/matched.h"

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// Replaces matches.
class PatternEditor {
 public:
  PatternEditor(Graph& graph, const PassContext& context)
      : graph_(graph), context_(context) {}

  // Returns false if the rule does not apply; the graph is then unchanged.
  // After an error, the graph may be partly edited.
  absl::StatusOr<bool> Replace(const RuleData& rule,
                               const PatternVariant& variant,
                               const Output* bound) {
    variant_ = &variant;
    bound_ = bound;
    root_ = bound[0].node;
    plan_.Clear();
    if (!plan_.Prepare(rule, MakeMatched(variant, bound, context_), context_)) {
      return false;
    }
    const ReplacementTree& tree = *rule.replacement;
    CollectControls();
    if (tree.kind == ReplacementTree::Kind::kMatched) {
      TFPLUG_RETURN_IF_ERROR(ReplaceByValue(ValueOf(tree)));
    } else {
      TFPLUG_RETURN_IF_ERROR(ReplaceByNode(tree));
    }
    TFPLUG_RETURN_IF_ERROR(RemoveRest());
    return true;
  }

  // Returns whether Replace would succeed.
  static bool Check(const RuleData& rule, const PatternVariant& variant,
                    const Output* bound, const PassContext& context,
                    Mismatch& mismatch) {
    PatternPlan plan;
    if (plan.Prepare(rule, MakeMatched(variant, bound, context), context)) {
      return true;
    }
    mismatch = plan.mismatch();
    return false;
  }

 private:
  static Matched MakeMatched(const PatternVariant& variant, const Output* bound,
                             const PassContext& context) {
    return Access::Construct<Matched>(variant, bound, context);
  }
  Output ValueOf(const ReplacementTree& tree) const {
    return Access::Find(MakeMatched(*variant_, bound_, context_), tree.matched);
  }
  bool IsMatchedNode(const Node& node) const {
    for (size_t i = 0; i < variant_->slots.size(); ++i) {
      if (variant_->slots[i]->is_node() && bound_[i].node == node) return true;
    }
    return false;
  }

  // Collects the matched nodes' control inputs from outside the match.
  void CollectControls() {
    controls_.clear();
    for (size_t i = 1; i < variant_->slots.size(); ++i) {
      if (!variant_->slots[i]->is_node()) continue;
      const Node& node = bound_[i].node;
      for (int c = 0; c < node.num_controls(); ++c) {
        const Node control = node.control(c);
        if (!IsMatchedNode(control)) AddTo(controls_, control);
      }
    }
  }
  static void AddTo(std::vector<Node>& nodes, const Node& node) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) {
      nodes.push_back(node);
    }
  }

  // Replaces the root by a matched value: removes the root, or turns it into an
  // Identity if its name or its control edges must remain.
  absl::Status ReplaceByValue(Output value) {
    bool has_controls = root_.num_controls() > 0 || !controls_.empty();
    for (const Use use : root_.uses()) {
      has_controls = has_controls || use.is_control();
    }
    if (!has_controls && !context_.IsPreserved(root_.name())) {
      const Output old{root_, variant_->root_port};
      TFPLUG_RETURN_IF_ERROR(graph_.ReplaceUses(old, value));
      return graph_.RemoveNode(root_);
    }
    TFPLUG_ASSIGN_OR_RETURN(const DataType type,
                            OutputType(root_, variant_->root_port));
    root_.SetOp("Identity");
    TFPLUG_RETURN_IF_ERROR(SetInputs(root_, {value}));
    ClearAttrs();
    root_.SetAttr("T", type);
    return SetControls();
  }

  absl::StatusOr<DataType> OutputType(const Node& node, int port) const {
    TFPLUG_ASSIGN_OR_RETURN(const OpSignature* signature,
                            context_.functions().GetSignature(node.op()));
    const auto index = static_cast<size_t>(port);
    for (size_t i = 0; i < signature->outputs.size(); ++i) {
      const OpSignature::Arg& output = signature->outputs[i];
      if (!output.number_attr.empty() || !output.type_list_attr.empty()) break;
      if (i < index) continue;
      if (output.type_attr.empty()) return output.type;
      return node.GetAttr<DataType>(output.type_attr);
    }
    return absl::InternalError("the type of output " + std::to_string(port) +
                               " of " + Describe(node) + " is unknown");
  }

  // Edits the root so that it becomes the new node.
  absl::Status ReplaceByNode(const ReplacementTree& tree) {
    TFPLUG_ASSIGN_OR_RETURN(std::vector<Output> inputs, AddInputs(tree));
    TFPLUG_RETURN_IF_ERROR(SetInputs(root_, inputs));
    root_.SetOp(tree.op);
    ClearAttrs();
    SetAttrs(tree, root_);
    return SetControls();
  }

  absl::StatusOr<std::vector<Output>> AddInputs(const ReplacementTree& tree) {
    std::vector<Output> inputs;
    for (const auto& input : tree.inputs) {
      if (input->kind == ReplacementTree::Kind::kMatched) {
        const Output value = ValueOf(*input);
        // Null if this variant does not contain the pattern.
        if (value.node) inputs.push_back(value);
        continue;
      }
      TFPLUG_ASSIGN_OR_RETURN(const Node node,
                              input->kind == ReplacementTree::Kind::kConst
                                  ? AddConst()
                                  : AddNode(*input));
      inputs.push_back(Output{node, 0});
    }
    return inputs;
  }
  absl::StatusOr<Node> AddNode(const ReplacementTree& tree) {
    TFPLUG_ASSIGN_OR_RETURN(const std::vector<Output> inputs, AddInputs(tree));
    TFPLUG_ASSIGN_OR_RETURN(Node node, AddNode(tree.op));
    for (const Output& input : inputs) {
      TFPLUG_RETURN_IF_ERROR(node.AddInput(input));
    }
    SetAttrs(tree, node);
    return node;
  }
  absl::StatusOr<Node> AddConst() {
    const Constant& constant = plan_.NextConstant();
    TFPLUG_ASSIGN_OR_RETURN(Node node, AddNode("Const"));
    constant.Write(node);
    // In a loop's body, a constant has a control input from the loop.
    for (size_t i = 1; i < variant_->slots.size(); ++i) {
      const Node& matched = bound_[i].node;
      if (!variant_->slots[i]->is_node() || matched.op() != "Const") {
        continue;
      }
      for (int c = 0; c < matched.num_controls(); ++c) {
        TFPLUG_RETURN_IF_ERROR(node.AddControl(matched.control(c)));
      }
    }
    return node;
  }
  absl::StatusOr<Node> AddNode(const std::string& op) {
    const std::string prefix = std::string(root_.name()) + "/" + op;
    TFPLUG_ASSIGN_OR_RETURN(Node node,
                            graph_.AddNode(graph_.UniqueName(prefix), op));
    node.SetDevice(root_.device());
    return node;
  }

  static absl::Status SetInputs(Node node, const std::vector<Output>& inputs) {
    const int old = node.num_inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int index = static_cast<int>(i);
      TFPLUG_RETURN_IF_ERROR(index < old ? node.SetInput(index, inputs[i])
                                         : node.AddInput(inputs[i]));
    }
    for (int i = old; i-- > static_cast<int>(inputs.size());) {
      TFPLUG_RETURN_IF_ERROR(node.RemoveInput(i));
    }
    return absl::OkStatus();
  }
  // Removes the root's attributes, except those whose names begin with an
  // underscore (_class, ...).
  void ClearAttrs() {
    names_.clear();
    Access::state(root_)->ForEachAttr(
        root_.id(), [this](absl::string_view name, absl::string_view) {
          if (name.empty() || name[0] != '_') names_.push_back(name);
        });
    for (absl::string_view name : names_) root_.RemoveAttr(name);
  }
  void SetAttrs(const ReplacementTree& tree, Node node) {
    names_.clear();
    for (const NewAttr& attr : tree.attrs) {
      if (attr.copy_from != nullptr) {
        const absl::string_view value = plan_.NextCopy();
        if (value.data() == nullptr) continue;
        node.SetRawAttr(attr.name, value);
      } else {
        const AttrValue* const computed =
            attr.function != nullptr ? &plan_.NextValue() : nullptr;
        if (!plan_.IsKnown(tree, attr)) continue;
        if (computed == nullptr) {
          node.SetRawAttr(attr.name, attr.bytes);
        } else {
          std::visit([&](const auto& v) { node.SetAttr(attr.name, v); },
                     *computed);
        }
      }
      names_.push_back(attr.name);
    }
    plan_.SetDefaults(tree, names_, node);
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
    std::vector<bool> is_removed(variant_->slots.size());
    is_removed[0] = true;
    for (bool again = true; again;) {
      again = false;
      for (size_t i = 1; i < is_removed.size(); ++i) {
        const Node node = bound_[i].node;
        if (is_removed[i] || !variant_->slots[i]->is_node() ||
            node.num_uses() > 0 || context_.IsPreserved(node.name())) {
          continue;
        }
        TFPLUG_RETURN_IF_ERROR(graph_.RemoveNode(node));
        is_removed[i] = again = true;
      }
    }
    for (size_t i = 1; i < is_removed.size(); ++i) {
      if (!is_removed[i] && variant_->slots[i]->is_consumed()) {
        return absl::InternalError(
            "the replacement still uses '" +
            std::string(bound_[i].node.name()) +
            "', which the rule removes; mark it MayHaveOtherUses(), or use "
            "its inputs");
      }
    }
    return absl::OkStatus();
  }

  Graph& graph_;
  const PassContext& context_;
  const PatternVariant* variant_ = nullptr;
  const Output* bound_ = nullptr;
  Node root_;
  PatternPlan plan_;
  std::vector<Node> controls_;
  std::vector<absl::string_view> names_;  // Scratch: names of attributes.
};

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_EDITOR_H_
