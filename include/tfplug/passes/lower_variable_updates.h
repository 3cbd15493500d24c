// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_LOWER_VARIABLE_UPDATES_H_
#define TFPLUG_PASSES_LOWER_VARIABLE_UPDATES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/data_type.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/kernel/new_values.h"
#include "tfplug/passes/internal/control_flow.h"
#include "tfplug/passes/internal/variable_update.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Makes v.assign_add(x) and v.assign_sub(x) work on device memory. TensorFlow's
// own kernels for AssignAddVariableOp and AssignSubVariableOp write to the
// variable from the host, and releases 2.19 to 2.21 do not export the functions
// that a plug-in's kernel would need. The pass replaces each such node on its
// device type with
//
//   read = ReadVariableOp(v)        after x and the node's control inputs
//   sum  = AddV2(read, x)           or Sub
//   node = AssignVariableOp(v, sum) under the old name, with its old uses
//
// The first and the last of these copy no data. Updates and lookups of slices
// are replaced in the same way: ResourceScatterSub, with which Keras trains an
// Embedding, becomes a read, a TensorScatterSub and an assignment (likewise
// Add, Update, Max and Min; a scalar update for all slices then fails),
// ResourceScatterNdAdd a TensorScatterAdd, and ResourceGather a read and a
// GatherV2. The optimizers of tf.compat.v1.train (ResourceApplyAdam) and
// ResourceScatterMul and Div become reads, an op of tfplug that computes all
// new values (kernel/new_values.h), and assignments.
//
// The pass covers the main graph, bodies of functions, branches and loops. It
// does not change a node if TensorFlow exports the functions and this library
// registers a kernel for the update. If the library has no kernel for the sum,
// as for Keras' int64 step counter, the CPU computes it.
//
// A replaced update is not atomic: if another function updates the same
// variable concurrently, an update may be lost, as with v.assign(v + x). An
// update of slices copies the whole variable. Updates of one variable within a
// graph are ordered, unless they hold different locks.
class LowerVariableUpdates : public GraphPass {
 public:
  absl::Status Run(Graph& graph, const PassContext& context) override {
    std::vector<Update> updates;
    for (const passes_internal::VariableOp& kind :
         passes_internal::kUpdateOps) {
      if (!graph.has_op(kind.op)) continue;
      for (Node node : graph.nodes(kind.op))
        Consider(node, kind, context, updates);
    }
    for (const kernel::UpdateOp& op : kernel::UpdateOps()) {
      if (!graph.has_op(op.op)) continue;
      for (Node node : graph.nodes(op.op))
        ConsiderNewValues(node, op, context, updates);
    }
    if (auto s = LowerGathers(graph, context); !s.ok()) return s;
    if (updates.empty()) return absl::OkStatus();
    const auto pairs = UnorderedPairs(graph, updates);
    if (!pairs.ok()) return pairs.status();
    for (Update& update : updates) {
      if (auto s = Lowering(graph, update).Lower(); !s.ok()) return s;
    }
    for (const Pair& pair : *pairs) {
      const Node read = updates[pair.second].reads[pair.variable];
      if (auto s = read.AddControl(updates[pair.first].node); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

 private:
  using Update = passes_internal::VariableUpdate;
  using Lowering = passes_internal::UpdateLowering;
  using VariableOp = passes_internal::VariableOp;

  static bool CanUpdateInPlace(absl::string_view op, DataType dtype,
                               DataType index_type,
                               const PassContext& context) {
    if (!Has(&CApi::TF_GetInputTensorFromVariable)) return false;
    return !context.HasAnyKernel() ||
           context.HasKernel(
               op, {{"dtype", dtype}, {"T", dtype}, {"Tindices", index_type}});
  }

  // Returns the type of the node's variables and of its indices.
  static absl::StatusOr<std::pair<DataType, DataType>> TypesOf(Node node) {
    const auto dtype =
        node.GetAttr<DataType>(node.HasAttr("dtype") ? "dtype" : "T");
    if (!dtype.ok()) return dtype.status();
    const char* const attr = node.HasAttr("Index") ? "Index" : "Tindices";
    if (!node.HasAttr(attr)) return std::pair(*dtype, DataType::kInt32);
    const auto index_type = node.GetAttr<DataType>(attr);
    if (!index_type.ok()) return index_type.status();
    return std::pair(*dtype, *index_type);
  }

  // Adds the node to `updates` if it must be replaced. In a function's body, a
  // node without a device may be placed on the plug-in's device later; the
  // replacement is correct on any device.
  static void Consider(Node node, const VariableOp& kind,
                       const PassContext& context,
                       std::vector<Update>& updates) {
    const absl::string_view device = node.device();
    const bool is_placed = !internal::DeviceTypeOf(device).empty();
    if (is_placed && !context.IsOnDevice(device)) return;
    if (node.num_inputs() != kind.num_inputs) return;
    const auto types = TypesOf(node);
    // Variants are tensor lists, which live on the host.
    if (!types.ok() || types->first == DataType::kVariant) return;
    const auto [dtype, index_type] = *types;
    if (CanUpdateInPlace(kind.op, dtype, index_type, context)) return;
    std::string math_device(device);
    if (context.HasAnyKernel() &&
        !context.HasKernel(kind.math_op, {{kind.math_type, dtype},
                                          {"Tindices", index_type},
                                          {"Index", index_type}})) {
      if (!is_placed) return;  // Replaced in a later call, once placed.
      math_device = internal::CpuInSameTask(device);
    }
    updates.push_back(
        {node, &kind, nullptr, dtype, index_type, std::move(math_device), {}});
  }

  // Does the same for an update that needs an op of tfplug's own.
  static void ConsiderNewValues(Node node, const kernel::UpdateOp& op,
                                const PassContext& context,
                                std::vector<Update>& updates) {
    if (!context.IsOnDevice(node.device())) return;
    if (node.num_inputs() != static_cast<int>(op.num_inputs) ||
        (op.option != nullptr && !node.HasAttr(op.option))) {
      return;
    }
    const auto types = TypesOf(node);
    if (!types.ok()) return;
    const auto [dtype, index_type] = *types;
    if (CanUpdateInPlace(op.op, dtype, index_type, context) ||
        !context.HasKernel(op.values_op, {{"T", dtype}})) {
      return;
    }
    updates.push_back({node,
                       nullptr,
                       &op,
                       dtype,
                       index_type,
                       std::string(node.device()),
                       {}});
  }

  // Replaces each ResourceGather and ResourceGatherNd. They only read, so the
  // order does not matter.
  static absl::Status LowerGathers(Graph& graph, const PassContext& context) {
    std::vector<Update> gathers;
    for (const VariableOp& kind : passes_internal::kReadOps) {
      if (!graph.has_op(kind.op)) continue;
      for (Node node : graph.nodes(kind.op))
        Consider(node, kind, context, gathers);
    }
    for (Update& gather : gathers) {
      const Node node = gather.node;
      // The axis follows the batch dimensions. A negative batch_dims is
      // relative to the rank of the index; Keras and tf.nn do not use it.
      const int64_t batch_dims =
          node.GetAttr<int64_t>("batch_dims").value_or(0);
      if (batch_dims < 0) continue;
      Lowering lowering(graph, gather);
      const auto read = lowering.AddRead(0);
      if (!read.ok()) return read.status();
      if (node.op() == "ResourceGather") {
        const auto axis =
            lowering.AddScalar("/axis", static_cast<int32_t>(batch_dims));
        if (!axis.ok()) return axis.status();
        if (auto s = node.AddInput(*axis); !s.ok()) return s;
        node.SetAttr("Taxis", DataType::kInt32);
      }
      node.SetOp(gather.kind->math_op);
      node.SetDevice(gather.math_device);
      node.RemoveAttr("dtype");
      node.RemoveAttr("validate_indices");
      node.SetAttr("Tparams", gather.dtype);
      if (auto s = node.SetInput(0, *read); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  // Two updates, and the index of their common variable in the second one.
  struct Pair {
    size_t first, second, variable;
  };

  // Finds consecutive updates of one variable, in topological order, between
  // which the graph may have no edge. The second must not read before the first
  // has assigned; otherwise, the first update would be lost. Skips updates in
  // branches and loops: the traced function orders those, and an edge out of a
  // branch that is not taken would disable the second update. Skips a
  // pair if the second holds a lock (tf.CriticalSection) and the first waits for
  // another one: the second could wait for the first forever. The locks exclude
  // the two, if they are of one mutex.
  static absl::StatusOr<std::vector<Pair>> UnorderedPairs(
      Graph& graph, const std::vector<Update>& updates) {
    std::vector<Pair> pairs;
    // For each variable, the updates and the index of the variable in each.
    std::map<std::string, std::vector<std::pair<size_t, size_t>>> by_variable;
    bool has_several = false;
    for (size_t i = 0; i < updates.size(); ++i) {
      for (size_t k = 0; k < updates[i].num_variables(); ++k) {
        auto& of_variable = by_variable[passes_internal::VariableOf(
            updates[i].node.input(static_cast<int>(k)))];
        of_variable.emplace_back(i, k);
        has_several = has_several || of_variable.size() > 1;
      }
    }
    if (!has_several) return pairs;
    const auto order = graph.TopologicalOrder();
    if (!order.ok()) return order.status();
    std::vector<size_t> position(graph.max_id());
    for (size_t i = 0; i < order->size(); ++i) position[(*order)[i].id()] = i;
    const passes_internal::Conditional conditional(graph);
    const bool has_locks = graph.has_op("MutexLock");
    for (auto& [variable, of_variable] : by_variable) {
      std::sort(of_variable.begin(), of_variable.end(),
                [&](const auto& a, const auto& b) {
                  return position[updates[a.first].node.id()] <
                         position[updates[b.first].node.id()];
                });
      const size_t* last = nullptr;
      std::set<uint32_t> needed;  // locks that the last one waits for
      for (const auto& [index, k] : of_variable) {
        if (conditional.Contains(updates[index].node)) continue;
        std::set<uint32_t> locks;
        if (has_locks) locks = LocksOf(updates[index].node);
        if (last != nullptr && *last != index &&
            (locks.empty() || std::includes(locks.begin(), locks.end(),
                                            needed.begin(), needed.end()))) {
          pairs.push_back({*last, index, k});
          locks.insert(needed.begin(), needed.end());
        }
        needed = std::move(locks);
        last = &index;
      }
    }
    return pairs;
  }

  // Returns the ids of the MutexLocks that the node waits for.
  static std::set<uint32_t> LocksOf(Node node) {
    std::set<uint32_t> locks, seen;
    std::vector<Node> pending = {node};
    const auto add = [&](Node from) {
      if (from && seen.insert(from.id()).second) pending.push_back(from);
    };
    while (!pending.empty()) {
      const Node next = pending.back();
      pending.pop_back();
      if (next.op() == "MutexLock") locks.insert(next.id());
      for (const Input& input : next.inputs()) add(input.from.node);
      for (Node control : next.controls()) add(control);
    }
    return locks;
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_LOWER_VARIABLE_UPDATES_H_
