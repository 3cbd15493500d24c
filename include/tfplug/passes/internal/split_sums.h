// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_SPLIT_SUMS_H_
#define TFPLUG_PASSES_INTERNAL_SPLIT_SUMS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/graph/ranges.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// The sums that TensorFlow's memory optimizer has split. Once it estimates that
// the graph's tensors need about 215 MB, which it takes for the memory of every
// device, it replaces an AddN(x, y, z) with
//
//   variable = TemporaryVariable()
//   start    = Assign(variable, ZerosLike(x))
//              AssignAdd(start, x), AssignAdd(start, y), AssignAdd(start, z)
//   sum      = DestroyTemporaryVariable(start)    after the three AssignAdd
//
// These ops update a tensor by reference, which no kernel of a plug-in can do.
class SplitSums {
 public:
  // Turns each of them on the device, or without a device, into an AddN again,
  // if the graph shows that nothing else reads or writes the variable.
  static absl::Status Rejoin(Graph& graph, const PassContext& context) {
    if (!graph.has_op(kSum) || context.HasKernel(kSum)) {
      return absl::OkStatus();
    }
    std::vector<SplitSums> found;
    for (const Node node : graph.nodes(kSum)) {
      if (!node.device().empty() && !context.IsOnDevice(node.device())) {
        continue;
      }
      SplitSums sum(node);
      if (sum.Find(context)) found.push_back(std::move(sum));
    }
    for (SplitSums& sum : found) {
      TFPLUG_RETURN_IF_ERROR(sum.Replace(graph, context));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr const char* kSum = "DestroyTemporaryVariable";

  explicit SplitSums(Node sum)
      : sum_(sum), type_(sum.GetAttr<DataType>("T").value_or(DataType(0))) {}

  // Finds the other nodes. Returns false if anything is not as expected.
  bool Find(const PassContext& context) {
    if (sum_.num_inputs() != 1 || type_ == DataType(0)) return false;
    start_ = sum_.input(0).node;
    if (!IsOwn(start_, "Assign", "T", 2, context)) return false;
    variable_ = start_.input(0).node;
    if (!IsOwn(variable_, "TemporaryVariable", "dtype", 0, context) ||
        variable_.num_uses() != 1) {
      return false;
    }
    const auto name = sum_.GetAttr<std::string>("var_name");
    const auto same = variable_.GetAttr<std::string>("var_name");
    if (!name.ok() || !same.ok() || *name != *same) return false;
    for (const Use& use : start_.uses()) {
      if (use.input != 0) return false;
      if (use.node == sum_) continue;
      if (!IsOwn(use.node, "AssignAdd", "T", 2, context) ||
          use.node.num_uses() != 1) {
        return false;
      }
      updates_.push_back(use.node);
    }
    return FindTerms(context);
  }

  // Returns whether the node is of this op, type and number of inputs, beside
  // the sum, and TensorFlow does not need it.
  bool IsOwn(Node node, absl::string_view op, const char* type_attr,
             int num_inputs, const PassContext& context) const {
    if (!node || node.op() != op || node.num_inputs() != num_inputs ||
        node.device() != sum_.device() || context.IsPreserved(node.name())) {
      return false;
    }
    const auto type = node.GetAttr<DataType>(type_attr);
    return type.ok() && *type == type_;
  }

  // Lists what is added, in the order of the updates for which the sum waits;
  // false if it does not wait for all.
  bool FindTerms(const PassContext& context) {
    const Output first = start_.input(1);
    if (!first) return false;
    // Any other value is a term, too.
    if (first.node.op() != "ZerosLike" ||
        context.IsPreserved(first.node.name())) {
      terms_.push_back(first);
    }
    size_t num_awaited = 0;
    for (const Node control : sum_.controls()) {
      if (std::find(updates_.begin(), updates_.end(), control) ==
          updates_.end()) {
        continue;
      }
      ++num_awaited;
      const Output term = control.input(1);
      if (!term) return false;
      terms_.push_back(term);
    }
    return num_awaited == updates_.size() && !terms_.empty();
  }

  absl::Status Replace(Graph& graph, const PassContext& context) {
    const Node zeros = start_.input(1).node;
    std::vector<Node> members = updates_;
    members.push_back(start_);
    members.push_back(variable_);
    std::vector<Node> controls;
    for (const Node member : members) {
      for (const Node control : member.controls()) controls.push_back(control);
    }
    for (const Node update : updates_) {
      TFPLUG_RETURN_IF_ERROR(sum_.RemoveControl(update));
    }
    TFPLUG_RETURN_IF_ERROR(sum_.SetInputs(terms_));
    for (const Node control : controls) {
      const bool is_implied =
          std::find(members.begin(), members.end(), control) != members.end() ||
          std::any_of(terms_.begin(), terms_.end(),
                      [&](const Output& term) { return term.node == control; });
      if (!is_implied) TFPLUG_RETURN_IF_ERROR(sum_.AddControl(control));
    }
    sum_.SetOp("AddN");
    sum_.RemoveAttr("var_name");
    sum_.SetAttr("N", static_cast<int64_t>(terms_.size()));
    for (const Node member : members) {
      TFPLUG_RETURN_IF_ERROR(graph.RemoveNode(member));
    }
    if (zeros.op() == "ZerosLike" && zeros.num_uses() == 0 &&
        !context.IsPreserved(zeros.name())) {
      return graph.RemoveNode(zeros);
    }
    return absl::OkStatus();
  }

  Node sum_, start_, variable_;
  DataType type_;
  std::vector<Node> updates_;
  std::vector<Output> terms_;
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_SPLIT_SUMS_H_
