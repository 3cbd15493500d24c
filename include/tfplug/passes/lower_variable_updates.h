// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_LOWER_VARIABLE_UPDATES_H_
#define TFPLUG_PASSES_LOWER_VARIABLE_UPDATES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/tensor_view.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/passes/internal/control_flow.h"

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
// Add, Update, Max and Min; a scalar update for all slices then fails), and
// ResourceGather becomes a read and a GatherV2.
//
// The pass covers the main graph, bodies of functions, branches and loops. It
// does not change a node if TensorFlow exports the functions and this library
// registers a kernel for the update. If the library has no kernel for the sum,
// as for Keras' int64 step counter, the CPU computes it.
//
// A replaced update is not atomic: if another function updates the same
// variable concurrently, an update may be lost, as with v.assign(v + x). An
// update of slices copies the whole variable. Updates of one variable within a
// graph are ordered.
class LowerVariableUpdates : public GraphPass {
 public:
  absl::Status Run(Graph& graph, const PassContext& context) override {
    std::vector<Update> updates;
    for (const Kind& kind : kKinds) {
      if (!graph.has_op(kind.op)) continue;
      for (Node node : graph.nodes(kind.op))
        Consider(node, kind, context, updates);
    }
    if (auto s = LowerGathers(graph, context); !s.ok()) return s;
    if (updates.empty()) return absl::OkStatus();
    const auto pairs = UnorderedPairs(graph, updates);
    if (!pairs.ok()) return pairs.status();
    for (Update& update : updates) {
      if (auto s = Lower(graph, update); !s.ok()) return s;
    }
    for (const auto& [first, second] : *pairs) {
      absl::Status s = updates[second].read.AddControl(updates[first].node);
      if (!s.ok()) return s;
    }
    return absl::OkStatus();
  }

 private:
  struct Kind {
    const char* op;
    const char* math_op;
    const char* math_suffix;
    const char* math_type;  // The type attribute of math_op.
    int num_inputs;  // Variable, value; for slices: variable, index, value.
  };
  static constexpr Kind kKinds[] = {
      {"AssignAddVariableOp", "AddV2", "/add", "T", 2},
      {"AssignSubVariableOp", "Sub", "/sub", "T", 2},
      {"ResourceScatterAdd", "TensorScatterAdd", "/scatter", "T", 3},
      {"ResourceScatterSub", "TensorScatterSub", "/scatter", "T", 3},
      {"ResourceScatterUpdate", "TensorScatterUpdate", "/scatter", "T", 3},
      {"ResourceScatterMax", "TensorScatterMax", "/scatter", "T", 3},
      {"ResourceScatterMin", "TensorScatterMin", "/scatter", "T", 3},
  };
  static constexpr Kind kGather = {"ResourceGather", "GatherV2", "", "Tparams",
                                   2};

  struct Update {
    Node node;
    const Kind* kind;
    DataType dtype, index_type;
    std::string math_device;
    Node read;  // Set by Lower.
  };

  static bool CanUpdateInPlace(const Kind& kind, DataType dtype,
                               DataType index_type,
                               const PassContext& context) {
    if (!Has(&CApi::TF_GetInputTensorFromVariable)) return false;
    return !context.HasAnyKernel() ||
           context.HasKernel(kind.op,
                             {{"dtype", dtype}, {"Tindices", index_type}});
  }

  // Adds the node to `updates` if it must be replaced. In a function's body, a
  // node without a device may be placed on the plug-in's device later; the
  // replacement is correct on any device.
  static void Consider(Node node, const Kind& kind, const PassContext& context,
                       std::vector<Update>& updates) {
    const absl::string_view device = node.device();
    const bool is_placed = !internal::DeviceTypeOf(device).empty();
    if (is_placed && !context.IsOnDevice(device)) return;
    if (node.num_inputs() != kind.num_inputs) return;
    const auto dtype = node.GetAttr<DataType>("dtype");
    const auto index_type = node.HasAttr("Tindices")
                                ? node.GetAttr<DataType>("Tindices")
                                : DataType::kInt32;
    // Variants are tensor lists, which live on the host.
    if (!dtype.ok() || !index_type.ok() || *dtype == DataType::kVariant) return;
    if (CanUpdateInPlace(kind, *dtype, *index_type, context)) return;
    std::string math_device(device);
    if (context.HasAnyKernel() &&
        !context.HasKernel(kind.math_op, {{kind.math_type, *dtype},
                                          {"Tindices", *index_type}})) {
      if (!is_placed) return;  // Replaced in a later call, once placed.
      math_device = internal::CpuInSameTask(device);
    }
    updates.push_back(
        {node, &kind, *dtype, *index_type, std::move(math_device), Node()});
  }

  // Adds a read of the variable that runs when the update would have run.
  static absl::StatusOr<Node> AddRead(Graph& graph, const Update& update) {
    const Node node = update.node;
    auto read = graph.AddNode(
        graph.UniqueName(std::string(node.name()) + "/read"), "ReadVariableOp");
    if (!read.ok()) return read;
    read->SetDevice(node.device());
    read->SetAttr("dtype", update.dtype);
    if (auto s = read->AddInput(node.input(0)); !s.ok()) return s;
    for (int i = 0; i < node.num_controls(); ++i) {
      if (auto s = read->AddControl(node.control(i)); !s.ok()) return s;
    }
    // The update ran after its data inputs, and so must the read. The node's
    // control edges may not include all of these, because TensorFlow removes
    // control edges that are parallel to data edges.
    for (int i = 1; i < node.num_inputs(); ++i) {
      if (auto s = read->AddControl(node.input(i).node); !s.ok()) return s;
    }
    if (node.HasAttr("_class")) {
      if (auto s = read->CopyAttr(node, "_class"); !s.ok()) return s;
    }
    return read;
  }

  // Adds a scalar constant on the update's device. A control input from the
  // index places it in the same loop as the index.
  static absl::StatusOr<Node> AddScalar(Graph& graph, const Update& update,
                                        const char* suffix, int32_t value) {
    auto added = graph.AddNode(
        graph.UniqueName(std::string(update.node.name()) + suffix), "Const");
    if (!added.ok()) return added;
    added->SetDevice(update.math_device);
    added->SetAttr("dtype", DataType::kInt32);
    added->SetTensor("value", TensorView<const int32_t, 0>(&value, {}));
    if (auto s = added->AddControl(update.node.input(1).node); !s.ok()) {
      return s;
    }
    return added;
  }

  // Adds the tensor with another dimension of 1, the first or, if `axis` is -1,
  // the last one.
  static absl::StatusOr<Output> AddDimension(Graph& graph, const Update& update,
                                             const char* suffix, Output tensor,
                                             DataType type, int32_t axis) {
    auto dim =
        AddScalar(graph, update, axis < 0 ? "/last_dim" : "/first_dim", axis);
    if (!dim.ok()) return dim.status();
    auto added = graph.AddNode(
        graph.UniqueName(std::string(update.node.name()) + suffix),
        "ExpandDims");
    if (!added.ok()) return added.status();
    added->SetDevice(update.math_device);
    added->SetAttr("T", type);
    added->SetAttr("Tdim", DataType::kInt32);
    if (auto s = added->SetInputs({tensor, *dim}); !s.ok()) return s;
    return Output(*added);
  }

  // Adds the index with a last dimension of 1, as the TensorScatter ops
  // require, and a first one: they accept no slices of rank 0, which a scalar
  // index into a vector has.
  static absl::StatusOr<Output> AddIndex(Graph& graph, const Update& update) {
    const auto index = AddDimension(graph, update, "/indices",
                                    update.node.input(1), update.index_type, 0);
    if (!index.ok()) return index;
    return AddDimension(graph, update, "/index", *index, update.index_type, -1);
  }

  // Replaces each ResourceGather. It only reads, so the order does not matter.
  static absl::Status LowerGathers(Graph& graph, const PassContext& context) {
    std::vector<Update> gathers;
    if (!graph.has_op(kGather.op)) return absl::OkStatus();
    for (Node node : graph.nodes(kGather.op))
      Consider(node, kGather, context, gathers);
    for (const Update& gather : gathers) {
      const Node node = gather.node;
      // The axis follows the batch dimensions. A negative batch_dims is
      // relative to the rank of the index; Keras and tf.nn do not use it.
      const int64_t batch_dims =
          node.GetAttr<int64_t>("batch_dims").value_or(0);
      if (batch_dims < 0) continue;
      const auto read = AddRead(graph, gather);
      if (!read.ok()) return read.status();
      const auto axis =
          AddScalar(graph, gather, "/axis", static_cast<int32_t>(batch_dims));
      if (!axis.ok()) return axis.status();
      node.SetOp(kGather.math_op);
      node.SetDevice(gather.math_device);
      node.RemoveAttr("dtype");
      node.RemoveAttr("validate_indices");
      node.SetAttr("Tparams", gather.dtype);
      node.SetAttr("Taxis", DataType::kInt32);
      if (auto s = node.SetInput(0, *read); !s.ok()) return s;
      if (auto s = node.AddInput(*axis); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  static absl::Status Lower(Graph& graph, Update& update) {
    const Node node = update.node;
    const int value = update.kind->num_inputs - 1;
    const std::string name(node.name());
    const auto read = AddRead(graph, update);
    if (!read.ok()) return read.status();

    auto math = graph.AddNode(graph.UniqueName(name + update.kind->math_suffix),
                              update.kind->math_op);
    if (!math.ok()) return math.status();
    math->SetDevice(update.math_device);
    math->SetAttr("T", update.dtype);
    if (auto s = math->AddInput(*read); !s.ok()) return s;
    if (value == 2) {
      const auto index = AddIndex(graph, update);
      if (!index.ok()) return index.status();
      math->SetAttr("Tindices", update.index_type);
      if (auto s = math->AddInput(*index); !s.ok()) return s;
    }
    Output addend = node.input(value);
    if (value == 2) {
      // The index has a first dimension of 1, see AddIndex().
      const auto slices =
          AddDimension(graph, update, "/slices", addend, update.dtype, 0);
      if (!slices.ok()) return slices.status();
      addend = *slices;
    }
    if (auto s = math->AddInput(addend); !s.ok()) return s;

    // Keeps the colocation with the variable.
    if (node.HasAttr("_class") && update.math_device == node.device()) {
      if (auto s = math->CopyAttr(node, "_class"); !s.ok()) return s;
    }
    if (value == 2) {
      node.RemoveAttr("Tindices");
      if (auto s = node.RemoveInput(2); !s.ok()) return s;
    }
    node.SetOp("AssignVariableOp");
    // Keeps the update's check that the shapes agree.
    node.SetAttr("validate_shape", true);
    update.read = *read;
    return node.SetInput(1, *math);
  }

  // Finds consecutive updates of one variable, in topological order, between
  // which the graph may have no edge. The second must not read before the first
  // has assigned; otherwise, the first update would be lost. Skips updates in
  // branches and loops: the traced function orders those, and an edge out of a
  // branch that is not taken would disable the second update.
  static absl::StatusOr<std::vector<std::pair<size_t, size_t>>> UnorderedPairs(
      Graph& graph, const std::vector<Update>& updates) {
    std::vector<std::pair<size_t, size_t>> pairs;
    std::map<std::string, std::vector<size_t>> by_variable;
    for (size_t i = 0; i < updates.size(); ++i) {
      by_variable[passes_internal::VariableOf(updates[i].node.input(0))]
          .push_back(i);
    }
    if (by_variable.size() == updates.size()) return pairs;
    const auto order = graph.TopologicalOrder();
    if (!order.ok()) return order.status();
    std::vector<size_t> position(graph.max_id());
    for (size_t i = 0; i < order->size(); ++i) position[(*order)[i].id()] = i;
    const passes_internal::Conditional conditional(graph);
    for (auto& [variable, indices] : by_variable) {
      std::sort(indices.begin(), indices.end(), [&](size_t a, size_t b) {
        return position[updates[a].node.id()] < position[updates[b].node.id()];
      });
      const size_t* last = nullptr;
      for (const size_t& index : indices) {
        if (conditional.Contains(updates[index].node)) continue;
        if (last != nullptr) pairs.emplace_back(*last, index);
        last = &index;
      }
    }
    return pairs;
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_LOWER_VARIABLE_UPDATES_H_
