// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_LOOP_VARIABLE_H_
#define TFPLUG_PASSES_INTERNAL_LOOP_VARIABLE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/node.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/graph/ranges.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// Returns what the Identity nodes before `value` pass on.
inline Output SkipIdentities(Output value) {
  for (int i = 0; i < 8 && value && value.node.op() == "Identity"; ++i) {
    value = value.node.input(0);
  }
  return value;
}

// The nodes of a variable of a lowered loop: Enter gives its first value,
// NextIteration the one for the next iteration, and output 1 of Switch is the
// one of this iteration.
struct LoopVariable {
  Node enter, next, merge, branch;

  // Returns the variable whose value of the iteration is `value`.
  static std::optional<LoopVariable> Find(Output value) {
    value = SkipIdentities(value);
    if (!value || value.node.op() != "Switch" || value.port != 1 ||
        value.node.num_inputs() != 2) {
      return std::nullopt;
    }
    const Output merge = value.node.input(0);
    if (!merge || merge.node.op() != "Merge" || merge.port != 0 ||
        merge.node.num_inputs() != 2) {
      return std::nullopt;
    }
    const Output enter = merge.node.input(0), next = merge.node.input(1);
    if (!enter || enter.node.op() != "Enter" || !next ||
        next.node.op() != "NextIteration" || enter.node.num_inputs() != 1 ||
        next.node.num_inputs() != 1) {
      return std::nullopt;
    }
    return LoopVariable{enter.node, next.node, merge.node, value.node};
  }
  // Returns the variable that begins with this Enter.
  static std::optional<LoopVariable> After(Node enter) {
    const Node merge = OnlyUser(enter);
    const Node branch = merge ? UserOf(merge, "Switch") : Node();
    if (!branch) return std::nullopt;
    const auto found = Find(Output(branch, 1));
    return found && found->enter == enter ? found : std::nullopt;
  }

  // Returns whether it starts with 0 and grows by 1 in each iteration.
  bool IsCounter(const PassContext& context) const {
    const Output sum = SkipIdentities(next.input(0));
    if (!IsInt32(context, enter.input(0), 0) || !sum ||
        sum.node.num_inputs() != 2 ||
        (sum.node.op() != "AddV2" && sum.node.op() != "Add")) {
      return false;
    }
    for (const int i : {0, 1}) {
      if (IsValue(sum.node.input(i)) &&
          IsInt32(context, sum.node.input(1 - i), 1)) {
        return true;
      }
    }
    return false;
  }
  bool IsInvariant() const { return IsValue(next.input(0)); }
  bool IsValue(Output value) const {
    return SkipIdentities(value) == Output(branch, 1);
  }

  // Returns the Exit of its last value, or null.
  Node exit() const {
    for (const Use& use : branch.uses(0)) {
      if (use.node.op() == "Exit") return use.node;
    }
    return {};
  }

  static bool IsInt32(const PassContext& context, Output output,
                      int32_t expected) {
    for (int i = 0; i < 8 && output && output.node.op() == "Identity"; ++i) {
      if (context.MayBeFed(output)) return false;
      output = output.node.input(0);
    }
    if (!output || output.node.op() != "Const") return false;
    const absl::StatusOr<Constant> value = context.ReadConstant(output.node);
    if (!value.ok() || value->num_elements() != 1) return false;
    const auto elements = value->GetElements<int32_t>();
    return elements.ok() && elements->front() == expected;
  }
  // Returns the only node that reads output 0, or null; there may be control
  // edges.
  static Node OnlyUser(Node node) {
    Node user;
    for (const Use& use : node.uses()) {
      if (use.is_control()) continue;
      if (user) return {};
      user = use.node;
    }
    return user;
  }

 private:
  static Node UserOf(Node node, const char* op) {
    for (const Use& use : node.uses(0)) {
      if (use.node.op() == op) return use.node;
    }
    return {};
  }
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_LOOP_VARIABLE_H_
