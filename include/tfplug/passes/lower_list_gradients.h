// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_LOWER_LIST_GRADIENTS_H_
#define TFPLUG_PASSES_LOWER_LIST_GRADIENTS_H_

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/passes/internal/cpu_nodes.h"
#include "tfplug/passes/internal/variant_values.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Makes gradients of loops over lists of tensors, as in Keras' recurrent
// layers, work on a device in releases that do not export the C functions which
// kernels for them need (2.19 to 2.21; op_kernels/tensor_lists.h). The two ops
// that have kernels only on TensorFlow's own devices become ops that TensorFlow
// has for every device:
//
//   ZerosLike(list) -> a list of the same length whose elements have no value,
//                      which all ops read as zeros
//   AddN(list, a list of zeros except element i, which is x)
//                   -> list with x added to element i
//
// The second is also faster: a loop of n steps adds n elements, not n * n.
//
// Both ops move to the CPU if the pass cannot do this: other sums of lists, and
// variants that the graph does not show to be lists, such as the optionals of
// tf.cond's second derivative. TensorFlow then copies the elements. So do, in all
// releases, lists of types that TensorFlow has on its own devices only, such as
// complex numbers, and the ops that forward a map of tensors (TensorMapInsert),
// whose keys TensorFlow compares on the host, wherever they are.
//
// Runs for each device type of a plug-in after the author's passes, if
// OptimizerSettings::replace_list_ops is true, the default.
class LowerListGradients : public GraphPass {
 public:
  absl::Status Run(Graph& graph, const PassContext& context) override {
    for (Node node : passes_internal::VariantValues::OnMaps(graph)) {
      if (IsOurs(context, node)) passes_internal::MoveToCpu(node);
    }
    const bool has_kernels =
        Has(&CApi::TF_AddNVariant) && Has(&CApi::TF_ZerosLikeVariant);
    std::vector<std::pair<Node, Kind>> found;  // before any of them changes
    for (const char* op : {"ZerosLike", "AddN"}) {
      if (!graph.has_op(op)) continue;
      for (Node node : graph.nodes(op)) {
        if (!IsOfVariants(node) || !IsOurs(context, node)) continue;
        const Kind kind = KindOf(context, node);
        if (has_kernels && kind != Kind::kListsOnCpu) continue;
        found.emplace_back(node, kind);
      }
    }
    for (const auto& [node, kind] : found) {
      bool is_lowered = false;
      if (kind == Kind::kLists && node.op() == "ZerosLike") {
        TFPLUG_RETURN_IF_ERROR(LowerZeros(graph, node));
        is_lowered = true;
      } else if (kind == Kind::kLists) {
        TFPLUG_ASSIGN_OR_RETURN(is_lowered, LowerSum(graph, node));
      }
      if (!is_lowered && context.IsOnDevice(node.device())) {
        passes_internal::MoveToCpu(node);
      }
    }
    return absl::OkStatus();
  }

 private:
  // Returns whether the node is on this device, or has no device yet (in the
  // body of a function).
  static bool IsOurs(const tfplug::PassContext& context, Node node) {
    return node.device().empty() || context.IsOnDevice(node.device());
  }

  static bool IsOfVariants(Node node) {
    const auto type = node.GetAttr<DataType>("T");
    return type.ok() && *type == DataType::kVariant;
  }

  // The variants that the graph shows a node to have.
  enum class Kind {
    kOther,
    kLists,       // of numbers that the device can add
    kListsOnCpu,  // of a type that no plug-in's device has lists of
  };
  static Kind KindOf(const PassContext& context, Node node) {
    const auto type = passes_internal::VariantValues::ElementType(node);
    if (!type || *type == DataType::kVariant) return Kind::kOther;
    if (!IsOnEachDevice(*type)) return Kind::kListsOnCpu;
    const bool can_add = *type == DataType::kInt32 || !context.HasAnyKernel() ||
                         context.HasKernel("AddV2", {{"T", *type}});
    return can_add ? Kind::kLists : Kind::kOther;
  }

  // Returns whether TensorFlow has list ops of this type for every device.
  static bool IsOnEachDevice(DataType type) {
    constexpr DataType kTypes[] = {DataType::kFloat, DataType::kDouble,
                                   DataType::kHalf,  DataType::kBfloat16,
                                   DataType::kInt32, DataType::kInt64};
    return std::find(std::begin(kTypes), std::end(kTypes), type) !=
           std::end(kTypes);
  }

  // Adds a node on the device of `node`, with a name derived from that of
  // `node`.
  static absl::StatusOr<Node> AddBeside(Graph& graph, Node node,
                                        const char* suffix, const char* op,
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
  static absl::Status ChangeOp(Node node, const char* op,
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

  // Resizing a list to length 0 and back leaves elements without values,
  // whatever their type and shape.
  static absl::Status LowerZeros(Graph& graph, Node node) {
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
    Output index, value;
    DataType dtype;
  };
  static std::optional<OneElement> AsOneElement(Node node) {
    if (node.op() != "TensorListSetItem" || node.num_inputs() != 3) {
      return std::nullopt;
    }
    const Node reserve = node.input(0).node;
    const auto dtype = node.GetAttr<DataType>("element_dtype");
    if (!reserve || reserve.op() != "TensorListReserve" || !dtype.ok()) {
      return std::nullopt;
    }
    return OneElement{node.input(1), node.input(2), *dtype};
  }

  // Returns false, and changes nothing, if two inputs are no OneElement.
  static absl::StatusOr<bool> LowerSum(Graph& graph, Node node) {
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
        return false;
      }
    }
    if (!sum || elements.empty()) return false;
    for (size_t i = 0; i < elements.size(); ++i) {
      const OneElement& element = elements[i];
      // An element without a value is read as zeros of this shape. Elements may
      // have different shapes.
      TFPLUG_ASSIGN_OR_RETURN(Node shape, AddBeside(graph, node, "/shape",
                                                    "Shape", {element.value}));
      shape.SetAttr("T", element.dtype);
      shape.SetAttr("out_type", DataType::kInt32);
      TFPLUG_ASSIGN_OR_RETURN(
          Node before, AddBeside(graph, node, "/get", "TensorListGetItem",
                                 {*sum, element.index, shape}));
      before.SetAttr("element_dtype", element.dtype);
      TFPLUG_ASSIGN_OR_RETURN(
          Node after,
          AddBeside(graph, node, "/add", "AddV2", {before, element.value}));
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
    return true;
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_LOWER_LIST_GRADIENTS_H_
