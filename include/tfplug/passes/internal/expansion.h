// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_EXPANSION_H_
#define TFPLUG_PASSES_INTERNAL_EXPANSION_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/narrow_types.h"
#include "tfplug/base/shape.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/internal/attr_codec.h"
#include "tfplug/graph/internal/tensor_proto.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/graph/ranges.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// Returns the number as an element of the type; "" for types without numbers.
inline std::string EncodeNumber(double number, DataType type) {
  const auto bytes_of = [](auto value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  switch (type) {
    case DataType::kFloat:
      return bytes_of(static_cast<float>(number));
    case DataType::kDouble:
      return bytes_of(number);
    case DataType::kHalf:
      return bytes_of(Half(static_cast<float>(number)));
    case DataType::kBfloat16:
      return bytes_of(BFloat16(static_cast<float>(number)));
    case DataType::kComplex64:
      return bytes_of(static_cast<float>(number)) + bytes_of(0.0f);
    case DataType::kComplex128:
      return bytes_of(number) + bytes_of(0.0);
    case DataType::kInt8:
    case DataType::kInt16:
    case DataType::kInt32:
    case DataType::kInt64:
    case DataType::kUint8:
    case DataType::kUint16:
    case DataType::kUint32:
    case DataType::kUint64:
      // All hosts that TensorFlow supports are little-endian.
      return bytes_of(static_cast<int64_t>(number))
          .substr(0, DataTypeSize(type));
    default:
      return "";
  }
}

// Replaces a node by a formula of other ops, all of the same type T, on the
// same device. The node keeps its name and becomes the outermost op.
//
//   Log(AddV2(x, 1))        x and y are the node's inputs 0 and 1
//   AddV2(...)              AddV2(AddV2(input 0, input 1), input 2) and so on
//   Neg(Max*(Neg(x), y))    * gives Max all attributes of the node, not only T
//   Mul(x, ones)            ones and zeros have the shape in the Const input 1
//   AddV2(x, x, ...)        a chain of AddV2, or one AddN, of as many x as the
//                           other input, a scalar Const, says: 2 to 8
class Expansion {
 public:
  Expansion(Graph& graph, const PassContext& context, Node node, DataType type)
      : graph_(graph), context_(context), node_(node), type_(type) {
    for (const Input& input : node.inputs()) inputs_.push_back(input.from);
  }

  // Returns the ops of a formula.
  static std::vector<absl::string_view> OpsOf(absl::string_view formula) {
    std::vector<absl::string_view> ops;
    while (!formula.empty()) {
      const absl::string_view word =
          formula.substr(0, formula.find_first_of("*(), "));
      if (IsOp(word)) ops.push_back(word);
      formula.remove_prefix(std::min(word.size() + 1, formula.size()));
    }
    return ops;
  }

  // Returns whether the formula repeats an input, which only the inputs' values
  // allow.
  static bool IsRepeated(absl::string_view formula) {
    return absl::StrContains(formula, "x, x, ...");
  }

  // Returns whether the node has the inputs that the formula needs, and its
  // constants can be written.
  bool CanApply(absl::string_view formula) const {
    if (formula.empty() || inputs_.empty()) return false;
    if (IsRepeated(formula)) return !ReadRepeated().empty();
    if (absl::StrContains(formula, "y") && inputs_.size() < 2) return false;
    const bool has_shape = absl::StrContains(formula, "ones") ||
                           absl::StrContains(formula, "zeros");
    if (has_shape && !ReadShape().ok()) return false;
    return !EncodeNumber(1, type_).empty();
  }

  absl::Status Apply(absl::string_view formula) {
    const absl::string_view first = formula.substr(0, formula.find('('));
    if (absl::StrContains(formula, "(...)")) return ApplyFold(first);
    if (IsRepeated(formula)) {
      inputs_ = ReadRepeated();
      return first == "AddN" ? ApplySum() : ApplyFold(first);
    }
    rest_ = formula;
    const Call call = ParseName();
    const auto arguments = ParseArguments();
    if (!arguments.ok()) return arguments.status();
    return Become(call, *arguments);
  }

 private:
  struct Call {
    absl::string_view op;
    bool has_all_attrs = false;
  };

  static bool IsOp(absl::string_view word) {
    return !word.empty() && word[0] >= 'A' && word[0] <= 'Z';
  }

  // Consumes "Max*(" or "Max(".
  Call ParseName() {
    Call call;
    call.op = rest_.substr(0, rest_.find_first_of("*("));
    rest_.remove_prefix(call.op.size());
    call.has_all_attrs = rest_.front() == '*';
    rest_.remove_prefix(call.has_all_attrs ? 2 : 1);
    return call;
  }

  // Consumes "x, Neg(y))".
  absl::StatusOr<std::vector<Output>> ParseArguments() {
    std::vector<Output> arguments;
    while (true) {
      auto argument = ParseArgument();
      if (!argument.ok()) return argument.status();
      arguments.push_back(*argument);
      const bool is_last = rest_.front() == ')';
      rest_.remove_prefix(is_last ? 1 : 2);
      if (is_last) return arguments;
    }
  }

  absl::StatusOr<Output> ParseArgument() {
    if (IsOp(rest_)) {
      const Call call = ParseName();
      auto arguments = ParseArguments();
      if (!arguments.ok()) return arguments.status();
      return AddOp(call, *arguments);
    }
    const absl::string_view word = rest_.substr(0, rest_.find_first_of(",)"));
    rest_.remove_prefix(word.size());
    if (word == "x") return inputs_[0];
    if (word == "y") return inputs_[1];
    if (word != "ones" && word != "zeros") {
      return AddConstant(std::strtod(std::string(word).c_str(), nullptr), {});
    }
    auto shape = ReadShape();
    if (!shape.ok()) return shape.status();
    return AddConstant(word == "ones" ? 1 : 0, *std::move(shape));
  }

  // Returns the value of input 1, a shape.
  absl::StatusOr<Shape> ReadShape() const {
    if (inputs_.size() < 2) {
      return absl::InvalidArgumentError("the node has no second input");
    }
    const auto constant = context_.ReadConstant(inputs_[1].node);
    if (!constant.ok()) return constant.status();
    const auto dims = constant->GetIntegers();
    if (!dims.ok()) return dims.status();
    return Shape(*dims);
  }

  // Returns the input that is not a Const as many times as the Const says; none
  // if there is no such pair.
  std::vector<Output> ReadRepeated() const {
    constexpr size_t kMaxCount = 8;
    if (inputs_.size() != 2) return {};
    for (const size_t i : {0, 1}) {
      const auto constant = context_.ReadConstant(inputs_[i].node);
      if (!constant.ok() || constant->shape().rank() != 0) continue;
      for (size_t count = 2; count <= kMaxCount; ++count) {
        const std::string number =
            EncodeNumber(static_cast<double>(count), type_);
        if (!number.empty() && constant->GetBytes() == number) {
          return std::vector<Output>(count, inputs_[1 - i]);
        }
      }
    }
    return {};
  }

  absl::StatusOr<Node> AddNode(absl::string_view op) {
    auto added = graph_.AddNode(
        graph_.UniqueName(std::string(node_.name()) + "/" + std::string(op)),
        op);
    if (added.ok()) added->SetDevice(node_.device());
    return added;
  }

  absl::StatusOr<Output> AddConstant(double number, Shape shape) {
    auto added = AddNode("Const");
    if (!added.ok()) return added.status();
    std::string tensor, value;
    graph_internal::AppendRepeatingTensor(tensor, type_, shape,
                                          EncodeNumber(number, type_));
    internal::AppendField(value, graph_internal::kAttrTensor, tensor);
    added->SetAttr("dtype", type_);
    added->SetRawAttr("value", value);
    // Places the constant in the same loop as the input.
    if (auto s = added->AddControl(inputs_[0].node); !s.ok()) return s;
    return Output(*added);
  }

  absl::StatusOr<Output> AddOp(const Call& call,
                               const std::vector<Output>& arguments) {
    auto added = AddNode(call.op);
    if (!added.ok()) return added.status();
    added->SetAttr("T", type_);
    if (call.has_all_attrs) {
      for (const auto& [name, value] : node_.GetAttrs()) {
        if (IsAttrOfOp(name)) added->SetRawAttr(name, value);
      }
    }
    if (auto s = added->SetInputs(arguments); !s.ok()) return s;
    return Output(*added);
  }

  // TensorFlow's own attributes, which any node may have, begin with '_'.
  static bool IsAttrOfOp(absl::string_view name) {
    return !absl::StartsWith(name, "_");
  }

  absl::Status Become(const Call& call, const std::vector<Output>& arguments) {
    std::vector<std::string> excess;
    for (const auto& [name, value] : node_.GetAttrs()) {
      if (IsAttrOfOp(name) && name != "T") excess.emplace_back(name);
    }
    for (const std::string& name : excess) {
      if (!call.has_all_attrs) node_.RemoveAttr(name);
    }
    node_.SetOp(call.op);
    return node_.SetInputs(arguments);
  }

  absl::Status ApplySum() {
    if (auto s = Become({"AddN"}, inputs_); !s.ok()) return s;
    node_.SetAttr("N", static_cast<int64_t>(inputs_.size()));
    return absl::OkStatus();
  }

  absl::Status ApplyFold(absl::string_view op) {
    if (inputs_.size() == 1) return Become({"Identity"}, inputs_);
    Output sum = inputs_[0];
    for (size_t i = 1; i + 1 < inputs_.size(); ++i) {
      const auto next = AddOp({op}, {sum, inputs_[i]});
      if (!next.ok()) return next.status();
      sum = *next;
    }
    return Become({op}, {sum, inputs_.back()});
  }

  Graph& graph_;
  const PassContext& context_;
  const Node node_;
  const DataType type_;
  std::vector<Output> inputs_;
  absl::string_view rest_;  // The part of the formula that is not yet parsed.
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_EXPANSION_H_
