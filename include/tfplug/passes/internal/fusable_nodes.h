// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_FUSABLE_NODES_H_
#define TFPLUG_PASSES_INTERNAL_FUSABLE_NODES_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/shape.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/ir/elementwise.h"
#include "tfplug/kernel/internal/kernel_set.h"
#include "tfplug/kernel/op.h"
#include "tfplug/passes/internal/cpu_nodes.h"
#include "tfplug/passes/internal/regions.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// Returns whether the shapes are equal in all runs. Unknown dimensions
// with the same number below -1 are equal: TensorFlow's inference numbers them.
inline bool AreEqual(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i) != b.dim(i) || a.dim(i) == -1) return false;
  }
  return true;
}
// Returns whether the shapes are known or likely to differ.
inline bool AreDifferent(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank()) return false;
  if (a.rank() != b.rank()) return true;
  for (int i = 0; i < a.rank(); ++i) {
    const int64_t x = a.dim(i), y = b.dim(i);
    // A dimension of 1 is likely to be broadcast to one that is unknown.
    if (x != y && ((x >= 0 && y >= 0) || x == 1 || y == 1)) return true;
  }
  return false;
}

// Finds the nodes of a graph that the backend computes element by element.
class FusableNodes {
 public:
  FusableNodes(Graph& graph, const PassContext& context)
      : context_(context),
        kernels_(context.device_type()),
        rows_(graph.max_id()),
        shapes_(graph.max_id()) {
    // The first row of an op counts, as for kernels.
    ForEachNode(graph, [&](const ir::FusableOp& row, Node node) {
      if (!Has(node) && IsFusable(row, row.types, node)) {
        rows_[node.id()] = &row;
      }
    });
    ForEachNode(graph, [&](const ir::FusableOp& row, Node node) {
      if (!Has(node) && ComparesOnDevice(row, node)) rows_[node.id()] = &row;
    });
    AddHostNodes(graph);
    ForEachNode(graph, [&](const ir::FusableOp&, Node node) {
      if (!Has(node)) return;
      for (const Input& input : node.inputs()) {
        has_edges_ |= input.from && Has(input.from.node);
      }
    });
  }

  // Returns whether an edge connects two of the nodes.
  bool has_edges() const { return has_edges_; }
  bool Has(Node node) const {
    return node.id() < rows_.size() && rows_[node.id()] != nullptr;
  }
  const ir::FusableOp& row(Node node) const { return *rows_[node.id()]; }
  void SetRegions(const Regions* regions) { regions_ = regions; }

  // Returns null if the nodes of the edge can be in one cluster, and otherwise
  // the reason.
  const char* WhyNotJoined(const Output& from, Node to) const {
    if (!from || !Has(from.node) || !Has(to)) {
      return "one of them is no element-wise op of the backend";
    }
    if (from.node.device() != to.device()) return "they are on two devices";
    if (regions_->of(from.node) != regions_->of(to)) {
      return "they run in different branches or loops";
    }
    if (AreDifferent(ShapeOf(from.node), ShapeOf(to))) {
      return "its input is broadcast";
    }
    return nullptr;
  }

  // Returns the type of an input of a fusable node.
  DataType InputType(Node node, int i) const {
    const ir::FusableOp& op = row(node);
    if (op.type_attr == nullptr) return DataType::kBool;
    const absl::string_view name = op.op.name;
    if (i == 0 && (name == "SelectV2" || name == "Select")) {
      return DataType::kBool;
    }
    const char* const attr = name == "Cast" ? "SrcT" : op.type_attr;
    return node.GetAttr<DataType>(attr).value_or(DataType(0));
  }
  DataType OutputType(Node node) const {
    const ir::FusableOp& op = row(node);
    if (op.gives_bool || op.type_attr == nullptr) return DataType::kBool;
    return node.GetAttr<DataType>(op.type_attr).value_or(DataType(0));
  }

  // Returns the shape of output 0, which has no rank if it is unknown.
  const PartialShape& ShapeOf(Node node) const {
    auto& [is_known, shape] = shapes_[node.id()];
    if (!is_known) {
      const auto outputs = context_.properties().GetOutputs(node.name());
      if (outputs.ok() && !outputs->empty()) shape = (*outputs)[0].shape;
      is_known = true;
    }
    return shape;
  }

 private:
  // Calls visit(row, node) for the nodes of each op that may be fused.
  template <class Visit>
  static void ForEachNode(Graph& graph, Visit visit) {
    for (const ir::FusableOp& row : ir::FusableOps()) {
      if (!graph.has_op(row.op.name)) continue;
      for (const Node node : graph.nodes(row.op.name)) visit(row, node);
    }
  }

  // Takes the types that the op may have.
  bool IsFusable(const ir::FusableOp& op, uint64_t types, Node node) const {
    const int arity = op.op.formula.arity();
    if (arity == 0 ? node.num_inputs() == 0 : node.num_inputs() != arity) {
      return false;
    }
    // The attribute "_kernel" selects a kernel with that label.
    if (!context_.IsOnDevice(node.device()) ||
        context_.IsPreserved(node.name()) || node.HasAttr("_kernel")) {
      return false;
    }
    const auto supports = [&](DataType type) {
      return static_cast<int>(type) < 64 && static_cast<int>(type) > 0 &&
             (types & uint64_t{1} << static_cast<int>(type)) != 0;
    };
    if (op.type_attr != nullptr) {
      const auto type = node.GetAttr<DataType>(op.type_attr);
      if (!type.ok() || !supports(*type)) return false;
      if (HasAuthorsKernel(op, *type)) return false;
    } else if (HasAuthorsKernel(op, DataType::kBool)) {
      return false;
    }
    const absl::string_view name = op.op.name;
    if (name == "Cast") {
      const auto from = node.GetAttr<DataType>("SrcT");
      return from.ok() && supports(*from) &&
             !node.GetAttr<bool>("Truncate").value_or(false);
    }
    if (name == "BiasAdd") {
      return node.GetAttr<std::string>("data_format").value_or("NHWC") ==
             "NHWC";
    }
    if (op.needs_equal_shapes && !HasEqualInputs(node)) return false;
    // If incompatible shapes are no error, Equal has a result for them.
    return node.GetAttr<bool>("incompatible_shape_error").value_or(true) ||
           HasFittingInputs(node);
  }

  // Returns whether the node compares int32 values of an op on the device with
  // a scalar. TensorFlow's kernel computes that on the host, with a copy in both
  // directions; Keras' argmax has such a node, which finds negative zeros.
  bool ComparesOnDevice(const ir::FusableOp& op, Node node) const {
    if (!op.gives_bool || node.num_inputs() != 2) return false;
    const Output x = node.input(0);
    return x && Has(x.node) && IsScalar(node.input(1)) &&
           IsFusable(op, op.host_types, node);
  }

  // Adds nodes that TensorFlow computes in host memory though nothing there needs
  // the results: their inputs are scalars, from the CPU or from the device, and
  // all their users are fusable. Keras' embeddings, to which -1 is the last word,
  // have such nodes.
  void AddHostNodes(Graph& graph) {
    std::vector<Node> pending;
    std::vector<bool> is_added(graph.max_id());
    ForEachNode(graph, [&](const ir::FusableOp& row, Node node) {
      if (row.host_types == 0 || Has(node) ||
          !IsFusable(row, row.host_types, node)) {
        return;
      }
      rows_[node.id()] = &row;
      is_added[node.id()] = true;
      pending.push_back(node);
    });
    const auto examine = [&](Node node) {
      if (node && is_added[node.id()]) pending.push_back(node);
    };
    while (!pending.empty()) {
      const Node node = pending.back();
      pending.pop_back();
      if (!Has(node) || IsNeededOnDeviceOnly(node)) continue;
      rows_[node.id()] = nullptr;
      for (const Input& input : node.inputs()) examine(input.from.node);
      for (const Use& use : node.uses()) examine(use.node);
    }
  }
  bool IsNeededOnDeviceOnly(Node node) const {
    bool any_input = false, any_use = false;
    for (const Input& input : node.inputs()) {
      if (IsScalar(input.from)) continue;
      any_input = true;
      if (!input.from || (!Has(input.from.node) && !IsOnCpu(input.from.node))) {
        return false;
      }
    }
    for (const Use& use : node.uses()) {
      if (use.is_control()) continue;
      any_use = true;
      if (!Has(use.node) || use.node.device() != node.device()) return false;
    }
    return any_input && any_use;
  }

  // Returns whether this is a constant without dimensions.
  bool IsScalar(const Output& output) const {
    if (!output || output.node.op() != "Const") return false;
    const auto shape = context_.ReadConstantShape(output.node);
    return shape.ok() && shape->rank() == 0;
  }

  // Returns whether the library's author has registered a kernel, which has
  // precedence over the one made from primitives.
  bool HasAuthorsKernel(const ir::FusableOp& op, DataType type) const {
    const auto [it, is_new] =
        authors_.emplace(std::make_pair(&op, type), false);
    if (is_new) {
      const kernel_internal::TypeAttr attr(
          op.type_attr == nullptr ? "" : op.type_attr, type);
      it->second =
          kernels_.HasAuthors(op.op.name, absl::MakeConstSpan(&attr, 1));
    }
    return it->second;
  }

  // Returns whether the inputs have the same shape or are scalars.
  bool HasFittingInputs(Node node) const {
    const auto inputs = context_.properties().GetInputs(node.name());
    if (!inputs.ok()) return false;
    const PartialShape* shape = nullptr;
    for (const TensorProperties& input : *inputs) {
      if (input.shape.rank() == 0) continue;
      if (shape != nullptr && !AreEqual(input.shape, *shape)) return false;
      shape = &input.shape;
    }
    return true;
  }
  bool HasEqualInputs(Node node) const {
    const auto inputs = context_.properties().GetInputs(node.name());
    if (!inputs.ok()) return false;
    for (const TensorProperties& input : *inputs) {
      if (!AreEqual(input.shape, (*inputs)[0].shape)) return false;
    }
    return true;
  }

  const PassContext& context_;
  const kernel_internal::KernelSet kernels_;
  std::vector<const ir::FusableOp*> rows_;                     // by node
  mutable std::vector<std::pair<bool, PartialShape>> shapes_;  // by node
  mutable std::map<std::pair<const ir::FusableOp*, DataType>, bool> authors_;
  const Regions* regions_ = nullptr;
  bool has_edges_ = false;
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_FUSABLE_NODES_H_
