// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_FUSED_CLUSTER_H_
#define TFPLUG_PASSES_INTERNAL_FUSED_CLUSTER_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/ir/compose.h"
#include "tfplug/ir/elementwise.h"
#include "tfplug/ir/scalar_code.h"
#include "tfplug/ir/serialize.h"
#include "tfplug/kernel/fused_map_ops.h"
#include "tfplug/passes/internal/fusable_nodes.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// Returns the only element of a scalar constant as Instruction::bits.
inline bool ReadScalar(const PassContext& context, const Node& node,
                       DataType type, uint64_t* bits) {
  if (node.op() != "Const") return false;
  const auto shape = context.ReadConstantShape(node);
  if (!shape.ok() || shape->rank() != 0) return false;
  const auto constant = Constant::Read(node);
  if (!constant.ok() || constant->dtype() != type) return false;
  if (ComputeType(type) == DataType(0)) return false;
  const std::string bytes = constant->GetBytes();
  // A bool is a byte, of which any but 0 is true.
  ir::VisitStored(type == DataType::kBool ? DataType::kUint8 : type,
                  [&](auto tag) {
                    typename decltype(tag)::type value{};
                    std::memcpy(&value, bytes.data(), sizeof(value));
                    *bits = ConstantBits(type, ir::Convert<double>(value),
                                         ir::Convert<int64_t>(value));
                  });
  if (type == DataType::kBool) *bits = *bits != 0 ? 1 : 0;
  return true;
}

// One cluster, whose nodes are in topological order, and the node that replaces
// them.
class FusedCluster {
 public:
  FusedCluster(Graph& graph, const PassContext& context,
               const FusableNodes& nodes, const std::vector<Node>& members)
      : graph_(graph), context_(context), nodes_(nodes), members_(members) {
    for (Node member : members_) values_.emplace(member.id(), kUnused);
    for (size_t i = members_.size(); i-- > 0;) FindUses(members_[i]);
    for (Node member : members_) AddInputs(member);
  }

  size_t num_operands() const { return inputs_.size() + outputs_.size(); }

  // Replaces the members. Returns a null node, and changes nothing, if the
  // cluster depends on constants only, nothing uses it, or a formula is wrong.
  absl::StatusOr<Node> Replace() {
    if (inputs_.empty() || outputs_.empty()) return Node();
    ExpressionBuilder builder;
    for (DataType type : input_types_) builder.Input(type);
    for (Node member : members_) {
      if (values_[member.id()] != kUnused) AddMember(member, builder);
    }
    std::vector<DataType> output_types;
    GraphProperties::List properties;
    for (Node member : outputs_) {
      output_types.push_back(nodes_.OutputType(member));
      properties.push_back({output_types.back(), nodes_.ShapeOf(member)});
      builder.Output(Value(&builder, values_[member.id()]),
                     output_types.back());
    }
    const auto expression = std::move(builder).Build();
    // An op's own kernel reports a formula that does not support its type.
    if (!expression.ok()) return Node();
    TFPLUG_ASSIGN_OR_RETURN(
        const Node fused, graph_.AddNode(graph_.UniqueName(absl::StrCat(
                                             members_.back().name(), "/fused")),
                                         kFusedMapOp));
    fused.SetDevice(members_.back().device());
    TFPLUG_RETURN_IF_ERROR(fused.SetInputs(inputs_));
    for (Node control : controls_) {
      TFPLUG_RETURN_IF_ERROR(fused.AddControl(control));
    }
    fused.SetAttr("Tin", input_types_);
    fused.SetAttr("Tout", output_types);
    fused.SetAttr("expression", Serialize(*expression));
    fused.SetAttr("checks", checks_);
    context_.properties().SetOutputs(fused.name(), properties);
    for (size_t k = 0; k < outputs_.size(); ++k) {
      TFPLUG_RETURN_IF_ERROR(graph_.ReplaceUses(
          Output(outputs_[k]), Output(fused, static_cast<int>(k))));
    }
    for (size_t i = members_.size(); i-- > 0;) {
      // The uses that are left are control inputs.
      TFPLUG_RETURN_IF_ERROR(graph_.ReplaceNode(members_[i], fused));
      TFPLUG_RETURN_IF_ERROR(graph_.RemoveNode(members_[i]));
    }
    return fused;
  }

 private:
  // The values of members that no output needs, and of those to be computed.
  static constexpr int32_t kUnused = -2, kLater = -1;

  bool IsMember(Node node) const { return values_.count(node.id()) > 0; }

  // Finds out whether the member, after those that use it, is an output, and
  // whether an output needs it.
  void FindUses(Node member) {
    bool is_output = false, is_needed = false;
    for (const Use& use : member.uses()) {
      if (use.is_control()) continue;
      is_output |= !IsMember(use.node);
      is_needed |= IsMember(use.node) && values_[use.node.id()] != kUnused;
    }
    if (is_output) outputs_.insert(outputs_.begin(), member);
    if (is_output || is_needed) values_[member.id()] = kLater;
  }

  // Adds the inputs from outside, except for scalar constants, which become
  // part of the expression. What only unused members read is still waited for.
  void AddInputs(Node member) {
    for (const Input& input : member.inputs()) {
      const Node from = input.from.node;
      if (IsMember(from)) continue;
      const DataType type = nodes_.InputType(member, input.index);
      uint64_t bits = 0;
      if (ReadScalar(context_, from, type, &bits)) {
        // A constant in a branch or loop runs when these run.
        for (Node control : from.controls()) AddControl(control);
      } else if (values_[member.id()] == kUnused) {
        AddControl(from);
      } else if (IndexOf(input.from) == inputs_.size()) {
        inputs_.push_back(input.from);
        input_types_.push_back(type);
      }
    }
    for (Node control : member.controls()) AddControl(control);
  }
  void AddControl(Node control) {
    if (!control || IsMember(control)) return;
    if (std::find(controls_.begin(), controls_.end(), control) ==
        controls_.end()) {
      controls_.push_back(control);
    }
  }
  size_t IndexOf(const Output& output) const {
    return static_cast<size_t>(
        std::find(inputs_.begin(), inputs_.end(), output) - inputs_.begin());
  }

  // Adds the formula of the member's op. Rounds as its kernel does when it
  // stores its output.
  void AddMember(Node member, ExpressionBuilder& builder) {
    const ElementwiseOp& op = nodes_.row(member).op;
    std::vector<Value> x;
    for (const Input& input : member.inputs()) {
      x.push_back(ValueOf(member, input, builder));
    }
    AddChecks(op.shapes, x);
    const double attr =
        op.attr == nullptr ? 0 : member.GetAttr<float>(op.attr).value_or(0);
    const DataType type = nodes_.OutputType(member);
    const Value y = Cast(WithShapes(op.formula(x, attr), x), ComputeType(type));
    values_[member.id()] = (ComputeType(type) == type ? y : Cast(y, type)).id();
  }
  Value ValueOf(Node member, const Input& input, ExpressionBuilder& builder) {
    const Node from = input.from.node;
    if (IsMember(from)) return Value(&builder, values_[from.id()]);
    const size_t index = IndexOf(input.from);
    const DataType type = nodes_.InputType(member, input.index);
    if (index < inputs_.size()) {
      return builder.Add(
          {Opcode::kInput, type, static_cast<int32_t>(index), -1, -1, 0});
    }
    uint64_t bits = 0;
    ReadScalar(context_, from, type, &bits);
    return builder.Add(
        {Opcode::kConstant, ComputeType(type), -1, -1, -1, bits});
  }
  // Returns y as a value that depends on all of x, so that they determine its
  // shape: the formula of ZerosLike is a constant.
  static Value WithShapes(Value y, const std::vector<Value>& x) {
    std::vector<bool> needed(static_cast<size_t>(y.id()) + 1);
    needed.back() = true;
    for (size_t i = needed.size(); i-- > 0;) {
      if (!needed[i]) continue;
      ir::ForEachOperand(y.builder()->instruction(static_cast<int32_t>(i)),
                         [&](size_t value) { needed[value] = true; });
    }
    const auto depends_on = [&](Value value) {
      return value.builder()->instruction(value.id()).opcode ==
                 Opcode::kConstant ||
             (value.id() < static_cast<int32_t>(needed.size()) &&
              needed[static_cast<size_t>(value.id())]);
    };
    for (Value each : x) {
      if (!depends_on(each)) y = Select(each == each, y, y);
    }
    return y;
  }

  void AddChecks(Shapes shapes, const std::vector<Value>& x) {
    if (shapes == Shapes::kBroadcast) return;
    const ShapeCheck check = shapes == Shapes::kBias ? ShapeCheck::kBias
                             : shapes == Shapes::kEqualOrScalars
                                 ? ShapeCheck::kEqualOrScalar
                                 : ShapeCheck::kEqual;
    for (size_t i = 1; i < x.size(); ++i) {
      checks_.insert(checks_.end(),
                     {static_cast<int64_t>(check), x[0].id(), x[i].id()});
    }
  }

  Graph& graph_;
  const PassContext& context_;
  const FusableNodes& nodes_;
  const std::vector<Node>& members_;
  std::unordered_map<uint32_t, int32_t> values_;  // by the id of the member
  std::vector<Output> inputs_;
  std::vector<DataType> input_types_;
  std::vector<Node> outputs_;  // the members whose values others use
  std::vector<Node> controls_;
  std::vector<int64_t> checks_;
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_FUSED_CLUSTER_H_
