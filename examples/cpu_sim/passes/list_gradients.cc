// SPDX-License-Identifier: Apache-2.0
#include "passes/list_gradients.h"

#include <tfplug/base/capability.h>
#include <tfplug/base/status_macros.h>

#include <optional>
#include <string>
#include <vector>

namespace cpu_sim {
namespace {

using tfplug::DataType;
using tfplug::Graph;
using tfplug::Node;
using tfplug::Output;

// Returns whether the node is on this device, or has no device yet (in the body
// of a function).
bool IsOurs(const tfplug::PassContext& context, Node node) {
  return node.device().empty() || context.IsOnDevice(node.device());
}

bool IsOfLists(Node node) {
  const auto type = node.GetAttr<DataType>("T");
  return type.ok() && *type == DataType::kVariant;
}

// Adds a node on the device of `node`, with a name derived from that of `node`.
absl::StatusOr<Node> AddBeside(Graph& graph, Node node, const char* suffix,
                               const char* op,
                               const std::vector<Output>& inputs) {
  const std::string name = std::string(node.name()) + suffix;
  TFPLUG_ASSIGN_OR_RETURN(Node added,
                          graph.AddNode(graph.UniqueName(name), op));
  added.SetDevice(node.device());
  for (const Output& input : inputs) {
    TFPLUG_RETURN_IF_ERROR(added.AddInput(input));
  }
  return added;
}

// Turns `node` into another op with these inputs, under its old name.
absl::Status ChangeOp(Node node, const char* op,
                      const std::vector<Output>& inputs) {
  node.SetOp(op);
  for (const auto& [name, value] : node.GetAttrs()) {
    if (name.substr(0, 1) != "_") node.RemoveAttr(name);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    TFPLUG_RETURN_IF_ERROR(node.SetInput(static_cast<int>(i), inputs[i]));
  }
  while (node.num_inputs() > static_cast<int>(inputs.size())) {
    TFPLUG_RETURN_IF_ERROR(node.RemoveInput(node.num_inputs() - 1));
  }
  return absl::OkStatus();
}

// Resizing a list to length 0 and back leaves elements without values, whatever
// their type and shape.
absl::Status LowerZeros(Graph& graph, Node node) {
  const Output list = node.input(0);
  TFPLUG_ASSIGN_OR_RETURN(Node length, AddBeside(graph, node, "/length",
                                                 "TensorListLength", {list}));
  // Not a constant, which would need a control input from the loop.
  TFPLUG_ASSIGN_OR_RETURN(
      Node zero, AddBeside(graph, node, "/zero", "Sub", {length, length}));
  zero.SetAttr("T", DataType::kInt32);
  TFPLUG_ASSIGN_OR_RETURN(
      Node empty,
      AddBeside(graph, node, "/empty", "TensorListResize", {list, zero}));
  return ChangeOp(node, "TensorListResize", {empty, length});
}

// A list of zeros except one element: the gradient of reading that element.
struct OneElement {
  Output index, value, shape;
  DataType dtype;
};
std::optional<OneElement> AsOneElement(Node node) {
  if (node.op() != "TensorListSetItem" || node.num_inputs() != 3) {
    return std::nullopt;
  }
  const Node reserve = node.input(0).node;
  const auto dtype = node.GetAttr<DataType>("element_dtype");
  if (!reserve || reserve.op() != "TensorListReserve" || !dtype.ok()) {
    return std::nullopt;
  }
  return OneElement{node.input(1), node.input(2), reserve.input(0), *dtype};
}

absl::Status LowerSum(Graph& graph, Node node) {
  // The sum starts with the one input that is not a OneElement.
  std::optional<Output> sum;
  std::vector<OneElement> elements;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Output input = node.input(i);
    const auto element = AsOneElement(input.node);
    if (element && (sum || i + 1 < node.num_inputs())) {
      elements.push_back(*element);
    } else if (!sum) {
      sum = input;
    } else {
      return absl::OkStatus();
    }
  }
  if (!sum || elements.empty()) return absl::OkStatus();
  for (size_t i = 0; i < elements.size(); ++i) {
    const OneElement& element = elements[i];
    TFPLUG_ASSIGN_OR_RETURN(Node before,
                            AddBeside(graph, node, "/get", "TensorListGetItem",
                                      {*sum, element.index, element.shape}));
    before.SetAttr("element_dtype", element.dtype);
    TFPLUG_ASSIGN_OR_RETURN(Node after, AddBeside(graph, node, "/add", "AddV2",
                                                  {before, element.value}));
    after.SetAttr("T", element.dtype);
    const std::vector<Output> inputs = {*sum, element.index, after};
    Node set = node;
    if (i + 1 < elements.size()) {
      TFPLUG_ASSIGN_OR_RETURN(
          set, AddBeside(graph, node, "/set", "TensorListSetItem", inputs));
    } else {
      TFPLUG_RETURN_IF_ERROR(ChangeOp(node, "TensorListSetItem", inputs));
    }
    set.SetAttr("element_dtype", element.dtype);
    sum = set;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ListGradients::Run(tfplug::Graph& graph,
                                const tfplug::PassContext& context) {
  if (tfplug::Has(&tfplug::CApi::TF_AddNVariant) &&
      tfplug::Has(&tfplug::CApi::TF_ZerosLikeVariant)) {
    return absl::OkStatus();
  }
  for (const char* op : {"ZerosLike", "AddN"}) {
    if (!graph.has_op(op)) continue;
    std::vector<Node> found;
    for (Node node : graph.nodes(op)) {
      if (IsOfLists(node) && IsOurs(context, node)) found.push_back(node);
    }
    for (Node node : found) {
      TFPLUG_RETURN_IF_ERROR(op[0] == 'Z' ? LowerZeros(graph, node)
                                          : LowerSum(graph, node));
    }
  }
  return absl::OkStatus();
}

}  // namespace cpu_sim
