// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_CAST_BOOL_LISTS_H_
#define TFPLUG_PASSES_CAST_BOOL_LISTS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Makes lists of bool tensors, such as the masks of Keras' recurrent layers,
// work on a device: TensorFlow has kernels for lists of numbers on every
// device, but none for lists of bool. The lists become lists of float, with the
// values 0 and 1; tensors are cast on their way in and out.
//
// Runs for each device type of a plug-in after the author's passes, if
// OptimizerSettings::replace_list_ops is true, the default, and if the library
// has a kernel of Cast.
class CastBoolLists : public GraphPass {
 public:
  absl::Status Run(Graph& graph, const PassContext& context) override {
    if (!context.HasKernel("Cast")) return absl::OkStatus();
    std::vector<std::pair<Node, const ListOp*>> found;
    for (const ListOp& list_op : kListOps) {
      if (!graph.has_op(list_op.op)) continue;
      for (Node node : graph.nodes(list_op.op)) {
        const auto dtype = node.GetAttr<DataType>("element_dtype");
        if (!dtype.ok() || *dtype != DataType::kBool ||
            !context.IsOnDevice(node.device())) {
          continue;
        }
        // Convert all lists or none: no list may have both types. A cast takes
        // the name of a preserved node, of which only output 0 can be fetched.
        if (list_op.output > 0 && context.IsPreserved(node.name())) {
          return absl::OkStatus();
        }
        found.emplace_back(node, &list_op);
      }
    }
    for (const auto& [node, list_op] : found) {
      const bool is_preserved = context.IsPreserved(node.name());
      TFPLUG_RETURN_IF_ERROR(Convert(graph, node, *list_op, is_preserved));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr DataType kListType = DataType::kFloat;

  // An op on lists, and the indices of the input and the output that are an
  // element or a tensor of all elements; -1 if there is none.
  struct ListOp {
    const char* op;
    int input;
    int output;
  };
  static constexpr ListOp kListOps[] = {
      {"EmptyTensorList", -1, -1},     {"TensorListReserve", -1, -1},
      {"TensorListFromTensor", 0, -1}, {"TensorListSetItem", 2, -1},
      {"TensorListPushBack", 1, -1},   {"TensorListGetItem", -1, 0},
      {"TensorListStack", -1, 0},      {"TensorListPopBack", -1, 1},
      {"TensorListGather", -1, 0},
  };

  static absl::StatusOr<Node> AddCast(Graph& graph, Node node,
                                      const char* suffix, Output from,
                                      DataType from_type, DataType to_type) {
    const std::string name = std::string(node.name()) + suffix;
    TFPLUG_ASSIGN_OR_RETURN(Node cast,
                            graph.AddNode(graph.UniqueName(name), "Cast"));
    cast.SetDevice(node.device());
    cast.SetAttr("SrcT", from_type);
    cast.SetAttr("DstT", to_type);
    cast.SetAttr("Truncate", false);
    TFPLUG_RETURN_IF_ERROR(cast.AddInput(from));
    return cast;
  }

  static absl::Status Convert(Graph& graph, Node node, const ListOp& list_op,
                              bool is_preserved) {
    node.SetAttr("element_dtype", kListType);
    if (list_op.input >= 0) {
      TFPLUG_ASSIGN_OR_RETURN(
          Node cast, AddCast(graph, node, "/in", node.input(list_op.input),
                             DataType::kBool, kListType));
      TFPLUG_RETURN_IF_ERROR(node.SetInput(list_op.input, cast));
    }
    if (list_op.output >= 0) {
      std::vector<Use> uses;
      for (Use use : node.uses(list_op.output)) uses.push_back(use);
      TFPLUG_ASSIGN_OR_RETURN(
          Node cast, AddCast(graph, node, "/out", Output(node, list_op.output),
                             kListType, DataType::kBool));
      for (const Use& use : uses) {
        TFPLUG_RETURN_IF_ERROR(use.node.SetInput(use.input, cast));
      }
      if (is_preserved) {
        const std::string name(node.name());
        TFPLUG_RETURN_IF_ERROR(node.SetName(graph.UniqueName(name + "/list")));
        TFPLUG_RETURN_IF_ERROR(cast.SetName(name));
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_CAST_BOOL_LISTS_H_
