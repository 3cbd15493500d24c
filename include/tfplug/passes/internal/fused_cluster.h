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
#include "tfplug/base/narrow_types.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/kernel/fused_map.h"
#include "tfplug/passes/internal/fusable_nodes.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// Returns the only element of a scalar constant as FusedMap::Step::bits.
inline bool ReadScalar(const PassContext& context, const Node& node,
                       DataType type, uint64_t* bits) {
  if (node.op() != "Const") return false;
  const auto shape = context.ReadConstantShape(node);
  if (!shape.ok() || shape->rank() != 0) return false;
  const auto constant = Constant::Read(node);
  if (!constant.ok() || constant->dtype() != type) return false;
  const std::string bytes = constant->GetBytes();
  const auto as = [&](auto value) {
    std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  };
  const auto real = [&](double value) {
    std::memcpy(bits, &value, sizeof(value));
    return true;
  };
  const auto integer = [&](int64_t value) {
    *bits = static_cast<uint64_t>(value);
    return true;
  };
  switch (type) {
    case DataType::kFloat:
      return real(double{as(float())});
    case DataType::kDouble:
      return real(as(double()));
    case DataType::kHalf:
      return real(double{static_cast<float>(as(Half()))});
    case DataType::kBfloat16:
      return real(double{static_cast<float>(as(BFloat16()))});
    case DataType::kInt8:
      return integer(as(int8_t()));
    case DataType::kInt16:
      return integer(as(int16_t()));
    case DataType::kInt32:
      return integer(as(int32_t()));
    case DataType::kInt64:
      return integer(as(int64_t()));
    case DataType::kUint8:
    case DataType::kBool:
      return integer(as(uint8_t()));
    case DataType::kUint16:
      return integer(as(uint16_t()));
    case DataType::kUint32:
      return integer(as(uint32_t()));
    case DataType::kUint64:
      return integer(static_cast<int64_t>(as(uint64_t())));
    default:
      return false;
  }
}

// One cluster, whose nodes are in topological order, and the node that replaces
// them.
class FusedCluster {
 public:
  FusedCluster(Graph& graph, const PassContext& context,
               const FusableNodes& nodes, const std::vector<Node>& members)
      : graph_(graph), context_(context), nodes_(nodes), members_(members) {
    for (Node member : members_) is_member_.emplace(member.id(), -1);
    for (Node member : members_) AddInputs(member);
    for (Node member : members_) AddStep(member);
  }

  size_t num_operands() const { return inputs_.size() + outputs_.size(); }

  // Replaces the members. Returns a null node, and changes nothing, if the
  // cluster depends on constants only or nothing uses it.
  absl::StatusOr<Node> Replace() {
    if (inputs_.empty() || outputs_.empty()) return Node();
    TFPLUG_ASSIGN_OR_RETURN(
        const Node fused, graph_.AddNode(graph_.UniqueName(absl::StrCat(
                                             members_.back().name(), "/fused")),
                                         kFusedMapOp));
    fused.SetDevice(members_.back().device());
    TFPLUG_RETURN_IF_ERROR(fused.SetInputs(inputs_));
    for (Node control : controls_) {
      TFPLUG_RETURN_IF_ERROR(fused.AddControl(control));
    }
    SetAttrs(fused);
    for (size_t k = 0; k < outputs_.size(); ++k) {
      TFPLUG_RETURN_IF_ERROR(
          graph_.ReplaceUses(outputs_[k], Output(fused, static_cast<int>(k))));
    }
    for (size_t i = members_.size(); i-- > 0;) {
      // The uses that are left are control inputs.
      TFPLUG_RETURN_IF_ERROR(graph_.ReplaceNode(members_[i], fused));
      TFPLUG_RETURN_IF_ERROR(graph_.RemoveNode(members_[i]));
    }
    return fused;
  }

 private:
  bool IsMember(Node node) const { return is_member_.count(node.id()) > 0; }

  // Adds the inputs from outside, except for scalar constants, which become
  // steps.
  void AddInputs(Node member) {
    for (const Input& input : member.inputs()) {
      const Node from = input.from.node;
      if (IsMember(from)) continue;
      const DataType type = nodes_.InputType(member, input.index);
      uint64_t bits = 0;
      if (ReadScalar(context_, from, type, &bits)) {
        // A constant in a branch or loop runs when these run.
        for (Node control : from.controls()) AddControl(control);
        continue;
      }
      if (ValueOfInput(input.from) >= 0) continue;
      inputs_.push_back(input.from);
      map_.inputs.push_back(type);
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
  int ValueOfInput(const Output& output) const {
    const auto found = std::find(inputs_.begin(), inputs_.end(), output);
    return found == inputs_.end() ? -1
                                  : static_cast<int>(found - inputs_.begin());
  }

  int AddValue(FusedMap::Step step) {
    const auto first = static_cast<int>(map_.inputs.size());
    const auto found = std::find(map_.steps.begin(), map_.steps.end(), step);
    const auto index = static_cast<int>(found - map_.steps.begin());
    if (found == map_.steps.end()) map_.steps.push_back(std::move(step));
    return first + index;
  }

  void AddStep(Node member) {
    FusedMap::Step step;
    step.op = std::string(member.op());
    step.type = nodes_.StepType(member);
    if (const char* const attr = nodes_.row(member).attr; attr != nullptr) {
      const double value = member.GetAttr<float>(attr).value_or(0);
      std::memcpy(&step.bits, &value, sizeof(value));
    }
    for (const Input& input : member.inputs()) {
      step.args.push_back(ValueOf(member, input));
    }
    const int value = AddValue(std::move(step));
    is_member_[member.id()] = value;
    for (const Use& use : member.uses()) {
      if (use.is_control() || IsMember(use.node)) continue;
      outputs_.emplace_back(member);
      map_.results.push_back(value);
      output_types_.push_back(nodes_.OutputType(member));
      properties_.push_back({output_types_.back(), nodes_.ShapeOf(member)});
      break;
    }
  }
  int ValueOf(Node member, const Input& input) {
    const Node from = input.from.node;
    if (IsMember(from)) return is_member_[from.id()];
    const int value = ValueOfInput(input.from);
    if (value >= 0) return value;
    FusedMap::Step step;
    step.op = "Const";
    step.type = nodes_.InputType(member, input.index);
    ReadScalar(context_, from, step.type, &step.bits);
    return AddValue(std::move(step));
  }

  void SetAttrs(Node fused) const {
    std::vector<std::string> steps;
    for (const FusedMap::Step& step : map_.steps) {
      steps.push_back(FusedMap::ToText(step));
    }
    fused.SetAttr("Tin", map_.inputs);
    fused.SetAttr("Tout", output_types_);
    fused.SetAttr("steps", steps);
    fused.SetAttr("results", std::vector<int64_t>(map_.results.begin(),
                                                  map_.results.end()));
    context_.properties().SetOutputs(fused.name(), properties_);
  }

  Graph& graph_;
  const PassContext& context_;
  const FusableNodes& nodes_;
  const std::vector<Node>& members_;
  std::unordered_map<uint32_t, int> is_member_;  // by node: its value
  FusedMap map_;
  std::vector<Output> inputs_, outputs_;
  std::vector<Node> controls_;
  std::vector<DataType> output_types_;
  GraphProperties::List properties_;
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_FUSED_CLUSTER_H_
