// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_PARALLEL_CONCATS_H_
#define TFPLUG_PASSES_INTERNAL_PARALLEL_CONCATS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/shape.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/graph/ranges.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// The ops into which TensorFlow turns tf.parallel_stack:
//
//   start = _ParallelConcatStart()
//           _ParallelConcatUpdate(start, value, loc=i)   for each value
//
// after which other ops read `start`. They have kernels
// (op_kernels/update_slice.h), but TensorFlow rejects them in a loop: `start`
// has no input, and so is outside of it. On the CPU they write to the memory of
// `start`, which TensorFlow may have copied to the device before.
class ParallelConcats {
 public:
  // Turns each `start` into a ConcatV2 of the values, on their device if the
  // library has a kernel for it.
  static absl::Status Replace(Graph& graph, const PassContext& context) {
    if (!graph.has_op(kStart)) return absl::OkStatus();
    std::vector<Node> nodes;
    for (const Node node : graph.nodes(kStart)) nodes.push_back(node);
    for (const Node node : nodes) {
      TFPLUG_RETURN_IF_ERROR(ReplaceOne(graph, context, node));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr const char* kStart = "_ParallelConcatStart";
  static constexpr const char* kUpdate = "_ParallelConcatUpdate";

  // Returns the updates by their index; none unless there is one for each row,
  // and nothing reads what they return.
  static std::vector<Node> FindUpdates(Node start, const PassContext& context) {
    const auto shape = start.GetAttr<PartialShape>("shape");
    if (!shape.ok() || shape->rank() < 1 || context.IsPreserved(start.name())) {
      return {};
    }
    std::vector<Node> updates;
    for (const Use& use : start.uses()) {
      if (use.node.op() != kUpdate) continue;
      const auto loc = use.node.GetAttr<int64_t>("loc");
      if (use.input != 0 || !loc.ok() || *loc < 0 || *loc >= shape->dim(0) ||
          use.node.num_inputs() != 2 || use.node.num_uses(0) > 0 ||
          context.IsPreserved(use.node.name())) {
        return {};
      }
      const auto row = static_cast<size_t>(*loc);
      if (updates.size() <= row) updates.resize(row + 1);
      if (updates[row]) return {};
      updates[row] = use.node;
    }
    if (static_cast<int64_t>(updates.size()) != shape->dim(0)) return {};
    for (const Node update : updates) {
      if (!update) return {};
    }
    return updates;
  }

  static absl::Status ReplaceOne(Graph& graph, const PassContext& context,
                                 Node start) {
    const auto type = start.GetAttr<DataType>("dtype");
    const std::vector<Node> updates = FindUpdates(start, context);
    if (updates.empty() || !type.ok()) return absl::OkStatus();
    std::vector<Output> inputs;
    inputs.reserve(updates.size() + 1);
    for (const Node update : updates) inputs.push_back(update.input(1));
    const std::string device(inputs[0].node.device());
    bool is_on_device = *type == DataType::kInt32 ||
                        context.HasKernel("ConcatV2", {{"T", *type}});
    for (const Output& input : inputs) {
      is_on_device = is_on_device && input.node.device() == device &&
                     context.IsOnDevice(device);
    }
    if (is_on_device) start.SetDevice(device);
    TFPLUG_ASSIGN_OR_RETURN(
        const Node axis,
        graph.AddNode(graph.UniqueName(absl::StrCat(start.name(), "/axis")),
                      "Const"));
    axis.SetDevice(start.device());
    const Shape scalar;
    Constant::Of<int32_t>(scalar, {0}).Write(axis);
    // Places the constant in the same loop as the values.
    TFPLUG_RETURN_IF_ERROR(axis.AddControl(inputs[0].node));
    inputs.emplace_back(axis);
    for (const Node update : updates) {
      std::vector<Node> controls;
      for (const Node control : update.controls()) controls.push_back(control);
      TFPLUG_RETURN_IF_ERROR(graph.ReplaceNode(update, start));
      TFPLUG_RETURN_IF_ERROR(graph.RemoveNode(update));
      for (const Node control : controls) {
        if (control != start) TFPLUG_RETURN_IF_ERROR(start.AddControl(control));
      }
    }
    start.SetOp("ConcatV2");
    for (const char* attr : {"shape", "dtype"}) start.RemoveAttr(attr);
    start.RemoveAttr("_class");  // The colocation with the updates.
    start.SetAttr("N", static_cast<int64_t>(updates.size()));
    start.SetAttr("T", *type);
    start.SetAttr("Tidx", DataType::kInt32);
    return start.SetInputs(inputs);
  }
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_PARALLEL_CONCATS_H_
