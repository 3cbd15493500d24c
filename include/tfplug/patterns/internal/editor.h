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
#include "tfplug/patterns/internal/matcher.h"
#include "tfplug/patterns/internal/plan.h"
#include "tfplug/patterns/internal/replacement.h"
#include "tfplug/patterns/matched.h"
#include "tfplug/patterns/rule.h"

namespace tfplug::internal {

// Puts replacements in the place of matches.
class PatternEditor {
 public:
  PatternEditor(Graph& graph, const PassContext& context)
      : graph_(graph), context_(context) {}

  // False if the rule does not apply after all; nothing has changed then. After
  // an error, anything may have.
  absl::StatusOr<bool> Replace(const Rule& rule, const PatternVariant& variant,
                               const Output* bound) {
    variant_ = &variant;
    bound_ = bound;
    root_ = bound[0].node;
    plan_.Clear();
    if (!plan_.Make(rule, Matched(variant, bound, context_), context_)) {
      return false;
    }
    const ReplacementTree& tree = *rule.replacement();
    CollectControls();
    if (tree.kind == ReplacementTree::Kind::kMatched) {
      TFPLUG_RETURN_IF_ERROR(PutValue(ValueOf(tree)));
    } else {
      TFPLUG_RETURN_IF_ERROR(PutNode(tree));
    }
    TFPLUG_RETURN_IF_ERROR(RemoveRest());
    return true;
  }

  static bool Check(const Rule& rule, const PatternVariant& variant,
                    const Output* bound, const PassContext& context,
                    Mismatch& mismatch) {
    PatternPlan plan;
    if (plan.Make(rule, Matched(variant, bound, context), context)) return true;
    mismatch = plan.mismatch();
    return false;
  }

 private:
  Output ValueOf(const ReplacementTree& tree) const {
    return Matched(*variant_, bound_, context_)[tree.matched];
  }
  bool IsMatchedNode(const Node& node) const {
    for (size_t i = 0; i < variant_->slots.size(); ++i) {
      if (variant_->slots[i]->kind == PatternSpec::Kind::kNode &&
          bound_[i].node == node) {
        return true;
      }
    }
    return false;
  }

  // What the matched nodes wait for, and each other's ordering left out.
  void CollectControls() {
    controls_.clear();
    for (size_t i = 1; i < variant_->slots.size(); ++i) {
      if (variant_->slots[i]->kind != PatternSpec::Kind::kNode) continue;
      const Node& node = bound_[i].node;
      for (int c = 0; c < node.num_controls(); ++c) {
        const Node waited_for = node.control(c);
        if (!IsMatchedNode(waited_for)) AddTo(controls_, waited_for);
      }
    }
  }
  static void AddTo(std::vector<Node>& nodes, const Node& node) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) {
      nodes.push_back(node);
    }
  }

  // The root gives way to a value that is there already.
  absl::Status PutValue(Output value) {
    bool is_waited_for = false;
    for (const Use use : root_.uses()) {
      is_waited_for = is_waited_for || use.input < 0;
    }
    const bool waits = root_.num_controls() > 0 || !controls_.empty();
    if (!is_waited_for && !waits && !context_.IsPreserved(root_.name())) {
      const Output old{root_, variant_->root_port};
      TFPLUG_RETURN_IF_ERROR(graph_.ReplaceUses(old, value));
      return graph_.RemoveNode(root_);
    }
    TFPLUG_ASSIGN_OR_RETURN(const DataType type,
                            OutputType(root_, variant_->root_port));
    root_.SetOp("Identity");
    TFPLUG_RETURN_IF_ERROR(PutInputs(root_, {value}));
    ClearAttrs();
    root_.SetAttr("T", type);
    return PutControls();
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
    return absl::InternalError("the type of its output " +
                               std::to_string(port) + " is not known");
  }

  // The root becomes the new node.
  absl::Status PutNode(const ReplacementTree& tree) {
    TFPLUG_ASSIGN_OR_RETURN(std::vector<Output> inputs, MakeInputs(tree));
    TFPLUG_RETURN_IF_ERROR(PutInputs(root_, inputs));
    root_.SetOp(tree.op);
    ClearAttrs();
    SetAttrs(tree, root_);
    return PutControls();
  }

  absl::StatusOr<std::vector<Output>> MakeInputs(const ReplacementTree& tree) {
    std::vector<Output> inputs;
    for (const auto& input : tree.inputs) {
      if (input->kind == ReplacementTree::Kind::kMatched) {
        const Output value = ValueOf(*input);
        // Part of the pattern's other ways only.
        if (value.node) inputs.push_back(value);
        continue;
      }
      TFPLUG_ASSIGN_OR_RETURN(const Node node,
                              input->kind == ReplacementTree::Kind::kConst
                                  ? MakeConst()
                                  : MakeNode(*input));
      inputs.push_back(Output{node, 0});
    }
    return inputs;
  }
  absl::StatusOr<Node> MakeNode(const ReplacementTree& tree) {
    TFPLUG_ASSIGN_OR_RETURN(const std::vector<Output> inputs, MakeInputs(tree));
    TFPLUG_ASSIGN_OR_RETURN(Node node, Add(tree.op));
    for (const Output& input : inputs) {
      TFPLUG_RETURN_IF_ERROR(node.AddInput(input));
    }
    SetAttrs(tree, node);
    return node;
  }
  absl::StatusOr<Node> MakeConst() {
    const Constant& constant = plan_.NextConstant();
    TFPLUG_ASSIGN_OR_RETURN(Node node, Add("Const"));
    constant.Write(node);
    // In a loop's body, constants wait for something in it.
    for (size_t i = 1; i < variant_->slots.size(); ++i) {
      const Node& matched = bound_[i].node;
      if (variant_->slots[i]->kind != PatternSpec::Kind::kNode ||
          matched.op() != "Const") {
        continue;
      }
      for (int c = 0; c < matched.num_controls(); ++c) {
        TFPLUG_RETURN_IF_ERROR(node.AddControl(matched.control(c)));
      }
    }
    return node;
  }
  absl::StatusOr<Node> Add(const std::string& op) {
    const std::string prefix = std::string(root_.name()) + "/" + op;
    TFPLUG_ASSIGN_OR_RETURN(Node node,
                            graph_.AddNode(graph_.UniqueName(prefix), op));
    node.SetDevice(root_.device());
    return node;
  }

  static absl::Status PutInputs(Node node, const std::vector<Output>& inputs) {
    const int old = node.num_inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int number = static_cast<int>(i);
      TFPLUG_RETURN_IF_ERROR(number < old ? node.SetInput(number, inputs[i])
                                          : node.AddInput(inputs[i]));
    }
    for (int i = old; i-- > static_cast<int>(inputs.size());) {
      TFPLUG_RETURN_IF_ERROR(node.RemoveInput(i));
    }
    return absl::OkStatus();
  }
  // But those that are TensorFlow's (_class, _output_shapes).
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

  absl::Status PutControls() {
    // What it waited for may be gone by now, or be an input of its own.
    for (int c = root_.num_controls(); c-- > 0;) {
      const Node waited_for = root_.control(c);
      if (waited_for != root_ && IsMatchedNode(waited_for)) {
        TFPLUG_RETURN_IF_ERROR(root_.RemoveControl(waited_for));
      } else {
        const auto found =
            std::find(controls_.begin(), controls_.end(), waited_for);
        if (found != controls_.end()) controls_.erase(found);
      }
    }
    for (const Node& control : controls_) {
      TFPLUG_RETURN_IF_ERROR(root_.AddControl(control));
    }
    return absl::OkStatus();
  }

  // All nodes that go, users before what they use; and of the others those that
  // nothing uses any more.
  absl::Status RemoveRest() {
    bool again = true;
    std::vector<bool> gone(variant_->slots.size());
    gone[0] = true;
    while (again) {
      again = false;
      for (size_t i = 1; i < gone.size(); ++i) {
        const Node node = bound_[i].node;
        if (gone[i] || variant_->slots[i]->kind != PatternSpec::Kind::kNode ||
            node.num_uses() > 0 || context_.IsPreserved(node.name())) {
          continue;
        }
        TFPLUG_RETURN_IF_ERROR(graph_.RemoveNode(node));
        gone[i] = again = true;
      }
    }
    for (size_t i = 1; i < gone.size(); ++i) {
      if (!gone[i] && PatternMatcher::Goes(*variant_->slots[i])) {
        return absl::InternalError(
            "the replacement still uses '" +
            std::string(bound_[i].node.name()) +
            "', which goes: let it be MayHaveOtherUses(), or use its inputs");
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
  std::vector<absl::string_view> names_;  // Of attributes, for a while.
};

}  // namespace tfplug::internal

#endif  // TFPLUG_PATTERNS_INTERNAL_EDITOR_H_
