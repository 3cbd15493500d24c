// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_FUSED_NORMS_H_
#define TFPLUG_PASSES_INTERNAL_FUSED_NORMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/graph/ranges.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// The batch normalizations that TensorFlow has fused with the sum and the
// activation that follow. It does so on every device if its own kernels use
// oneDNN, the default on x86 processors.
class FusedNorms {
 public:
  // Turns each _FusedBatchNormEx on the device, for which the library has no
  // kernel, into FusedBatchNormV3, AddV2 and Relu again.
  static absl::Status Split(Graph& graph, const PassContext& context) {
    if (!graph.has_op(kFused)) return absl::OkStatus();
    std::vector<Node> nodes;
    for (const Node node : graph.nodes(kFused)) {
      const auto type = node.GetAttr<DataType>("T");
      // A fetched output 0 would be the one before the activation.
      if (type.ok() && context.IsOnDevice(node.device()) &&
          !context.HasKernel(kFused, {{"T", *type}}) &&
          !context.IsPreserved(node.name())) {
        nodes.push_back(node);
      }
    }
    for (const Node node : nodes) {
      TFPLUG_RETURN_IF_ERROR(SplitOne(graph, context, node));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr const char* kFused = "_FusedBatchNormEx";
  static constexpr int kNumInputs = 5;  // Of the normalization itself.

  static absl::Status SplitOne(Graph& graph, const PassContext& context,
                               Node node) {
    const auto mode = node.GetAttr<std::string>("activation_mode");
    const bool has_side = node.num_inputs() == kNumInputs + 1;
    if (!mode.ok() || (*mode != "Relu" && *mode != "Identity") ||
        (!has_side && node.num_inputs() != kNumInputs)) {
      return absl::OkStatus();
    }
    std::vector<Use> uses;
    for (const Use& use : node.uses(0)) uses.push_back(use);
    Output value = node;
    if (has_side) {
      TFPLUG_ASSIGN_OR_RETURN(value, AddAfter(graph, context, node, "AddV2",
                                              {value, node.input(kNumInputs)}));
      TFPLUG_RETURN_IF_ERROR(node.RemoveInput(kNumInputs));
    }
    if (*mode == "Relu") {
      TFPLUG_ASSIGN_OR_RETURN(value,
                              AddAfter(graph, context, node, "Relu", {value}));
    }
    node.SetOp("FusedBatchNormV3");
    node.RemoveAttr("activation_mode");
    node.RemoveAttr("num_side_inputs");
    for (const Use& use : uses) {
      TFPLUG_RETURN_IF_ERROR(use.node.SetInput(use.input, value));
    }
    return absl::OkStatus();
  }

  static absl::StatusOr<Output> AddAfter(Graph& graph,
                                         const PassContext& context, Node node,
                                         const char* op,
                                         const std::vector<Output>& inputs) {
    TFPLUG_ASSIGN_OR_RETURN(
        const Node added,
        graph.AddNode(graph.UniqueName(absl::StrCat(node.name(), "/", op)),
                      op));
    added.SetDevice(node.device());
    TFPLUG_RETURN_IF_ERROR(added.CopyAttr(node, "T"));
    TFPLUG_RETURN_IF_ERROR(added.SetInputs(inputs));
    const auto properties = context.properties().GetOutputs(node.name());
    if (properties.ok()) {
      context.properties().SetOutputs(added.name(), {(*properties)[0]});
    }
    return Output(added);
  }
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_FUSED_NORMS_H_
