// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_RECOMPUTE_LOOP_VALUES_H_
#define TFPLUG_PASSES_RECOMPUTE_LOOP_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/release.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/node.h"
#include "tfplug/graph/ranges.h"
#include "tfplug/passes/internal/loop_variable.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Recomputes int32 values of a loop in the loop of its gradient. TensorFlow
// pushes the values that the gradient needs onto a list, in the memory of the
// device, and pops them in reverse. For an RNN some are int32, which are in
// host memory: its counter, and the length and element shape of its input.
// Each iteration copies them to the device; the gradient's copies them back,
// and waits. The pass computes
//
//   * a counter k of n iterations as n - 1 - k from the gradient's counter k,
//   * a value that is the same in all iterations before the loop,
//
// and removes the lists, also those from which nothing is read. It does not run
// where KeepConditionsOnHost does not, because it shortens iterations as well.
class RecomputeLoopValues : public GraphPass {
 public:
  absl::Status Run(Graph& graph, const PassContext& context) override {
    if (!graph.has_op("TensorListPushBack")) return absl::OkStatus();
    std::vector<Node> pushes;
    for (Node node : graph.nodes("TensorListPushBack")) {
      const auto type = node.GetAttr<DataType>("element_dtype");
      if (type.ok() && *type == DataType::kInt32 &&
          context.IsOnDevice(node.device())) {
        pushes.push_back(node);
      }
    }
    for (Node push : pushes) {
      const std::optional<Stack> stack = FindStack(push, context);
      if (!stack) continue;
      if (stack->pop && stack->pop.num_uses(1) > 0) {
        TFPLUG_ASSIGN_OR_RETURN(const Output value,
                                Recompute(graph, context, *stack, push));
        if (!value) continue;
        TFPLUG_RETURN_IF_ERROR(graph.ReplaceUses(Output(stack->pop, 1), value));
      }
      if (stack->pop) TFPLUG_RETURN_IF_ERROR(Drop(graph, stack->pop));
      TFPLUG_RETURN_IF_ERROR(Drop(graph, push));
    }
    return absl::OkStatus();
  }

 private:
  using LoopVariable = passes_internal::LoopVariable;

  // A list onto which a loop pushes one value per iteration, and from which
  // the loop of the gradient pops one per iteration, if there is such a loop.
  struct Stack {
    LoopVariable pushed;
    std::optional<LoopVariable> popped;
    Node pop;
  };

  static std::optional<Stack> FindStack(Node push, const PassContext& context) {
    const auto list = LoopVariable::Find(push.input(0));
    if (!list || !IsOnlyUse(push, *list, context) ||
        list->enter.input(0).node.op() != "EmptyTensorList") {
      return std::nullopt;
    }
    Stack stack{*list, std::nullopt, {}};
    Node enter;
    for (const Use& use : list->branch.uses(0)) {
      if (use.node.op() != "Exit" || context.IsPreserved(use.node.name())) {
        return std::nullopt;
      }
      for (const Use& after : use.node.uses(0)) {
        if (enter || after.node.op() != "Enter") return std::nullopt;
        enter = after.node;
      }
    }
    if (!enter) return stack;
    stack.popped = LoopVariable::After(enter);
    if (!stack.popped) return std::nullopt;
    for (const Use& use : stack.popped->branch.uses(0)) {
      if (use.node.op() != "Exit" || use.node.num_uses(0) > 0 ||
          context.IsPreserved(use.node.name())) {
        return std::nullopt;
      }
    }
    stack.pop = stack.popped->next.input(0).node;
    if (stack.pop.op() != "TensorListPopBack" ||
        !stack.popped->IsValue(stack.pop.input(0)) ||
        !IsOnlyUse(stack.pop, *stack.popped, context)) {
      return std::nullopt;
    }
    return stack;
  }

  // Returns whether `op`, a push or a pop, is the only one that reads the list
  // in its loop, and NextIteration the only one that reads the list after it.
  static bool IsOnlyUse(Node op, const LoopVariable& list,
                        const PassContext& context) {
    for (Output from = op.input(0); from.node != list.branch;
         from = from.node.input(0)) {
      if (!LoopVariable::OnlyUser(from.node)) return false;
    }
    return list.branch.num_uses(1) == 1 && list.merge.num_uses(0) == 1 &&
           op.num_uses(0) == 1 && list.next.input(0) == Output(op, 0) &&
           op.num_uses(kControl) == 0 && !context.IsPreserved(op.name());
  }

  // Returns the value that the gradient would pop, computed in its loop; null
  // if this class does not know how.
  static absl::StatusOr<Output> Recompute(Graph& graph,
                                          const PassContext& context,
                                          const Stack& stack, Node push) {
    const Output value = passes_internal::SkipIdentities(push.input(1));
    if (!value) return Output();
    if (const auto variable = LoopVariable::Find(value)) {
      if (variable->IsInvariant()) {
        return AddEnter(graph, stack, variable->enter.input(0));
      }
      const auto counter = FindCounter(graph, context, *stack.popped);
      const Node exit = variable->exit();
      if (!variable->IsCounter(context) || !exit || !counter) return Output();
      TFPLUG_ASSIGN_OR_RETURN(Node one, AddNode(graph, push, "Const", {}));
      Constant::Of<int32_t>(Shape({}), {1}).Write(one);
      // Places the constant in the loop, if any, in which both loops are.
      TFPLUG_RETURN_IF_ERROR(one.AddControl(exit));
      TFPLUG_ASSIGN_OR_RETURN(Node last,
                              AddNode(graph, push, "Sub", {exit, one}));
      last.SetAttr("T", DataType::kInt32);
      TFPLUG_ASSIGN_OR_RETURN(const Output entered,
                              AddEnter(graph, stack, last));
      TFPLUG_ASSIGN_OR_RETURN(Node result,
                              AddNode(graph, stack.pop, "Sub",
                                      {entered, Output(counter->branch, 1)}));
      result.SetAttr("T", DataType::kInt32);
      return Output(result);
    }
    if (value.node.op() == "TensorListLength" ||
        value.node.op() == "TensorListElementShape") {
      const auto list = LoopVariable::Find(value.node.input(0));
      if (!list || !list->IsInvariant()) return Output();
      TFPLUG_ASSIGN_OR_RETURN(Node before,
                              AddNode(graph, push, std::string(value.node.op()),
                                      {list->enter.input(0)}));
      before.CopyAttrs(value.node);
      return AddEnter(graph, stack, before);
    }
    return Output();
  }

  // Returns a counter of the loop to which `variable` belongs.
  static std::optional<LoopVariable> FindCounter(Graph& graph,
                                                 const PassContext& context,
                                                 const LoopVariable& variable) {
    const auto frame = variable.enter.GetAttr<std::string>("frame_name");
    for (Node enter : graph.nodes("Enter")) {
      const auto other = enter.GetAttr<std::string>("frame_name");
      if (!frame.ok() || !other.ok() || *frame != *other) continue;
      const auto found = LoopVariable::After(enter);
      if (found && found->IsCounter(context)) return found;
    }
    return std::nullopt;
  }

  // Lets the loop of the gradient read `value`, which is outside of it.
  static absl::StatusOr<Output> AddEnter(Graph& graph, const Stack& stack,
                                         Output value) {
    TFPLUG_ASSIGN_OR_RETURN(Node enter,
                            AddNode(graph, stack.pop, "Enter", {value}));
    enter.CopyAttrs(stack.popped->enter);
    enter.SetAttr("T", DataType::kInt32);
    enter.SetAttr("is_constant", true);
    return Output(enter);
  }

  static absl::StatusOr<Node> AddNode(Graph& graph, Node beside,
                                      const std::string& op,
                                      const std::vector<Output>& inputs) {
    TFPLUG_ASSIGN_OR_RETURN(
        Node node,
        graph.AddNode(graph.UniqueName(absl::StrCat(beside.name(), "/", op)),
                      op));
    node.SetDevice(beside.device());
    for (const Output& input : inputs) {
      TFPLUG_RETURN_IF_ERROR(node.AddInput(input));
    }
    return node;
  }

  // Removes a push or a pop: the list stays as it is.
  static absl::Status Drop(Graph& graph, Node op) {
    TFPLUG_RETURN_IF_ERROR(graph.ReplaceUses(Output(op, 0), op.input(0)));
    return graph.RemoveNode(op);
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_RECOMPUTE_LOOP_VALUES_H_
