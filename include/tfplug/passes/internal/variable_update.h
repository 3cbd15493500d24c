// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_VARIABLE_UPDATE_H_
#define TFPLUG_PASSES_INTERNAL_VARIABLE_UPDATE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/base/tensor_view.h"
#include "tfplug/graph/graph.h"
#include "tfplug/kernel/new_values.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// How the op on values differs from the op on the variable.
enum class UpdateForm {
  kSame,  // It has the same inputs and attributes.
  kSum,   // It has the same inputs, but only the attribute T.
  kRows,  // It takes indices of elements, not of rows.
};

// An op that updates or reads a variable, its first input, and an op that
// computes the same from the variable's value.
struct VariableOp {
  const char* op;
  const char* math_op;
  const char* math_suffix;
  const char* math_type;  // The type attribute of math_op.
  int num_inputs;
  UpdateForm form = UpdateForm::kSame;
};

inline constexpr VariableOp kUpdateOps[] = {
    {"AssignAddVariableOp", "AddV2", "/add", "T", 2, UpdateForm::kSum},
    {"AssignSubVariableOp", "Sub", "/sub", "T", 2, UpdateForm::kSum},
    {"ResourceScatterAdd", "TensorScatterAdd", "/scatter", "T", 3,
     UpdateForm::kRows},
    {"ResourceScatterSub", "TensorScatterSub", "/scatter", "T", 3,
     UpdateForm::kRows},
    {"ResourceScatterUpdate", "TensorScatterUpdate", "/scatter", "T", 3,
     UpdateForm::kRows},
    {"ResourceScatterMax", "TensorScatterMax", "/scatter", "T", 3,
     UpdateForm::kRows},
    {"ResourceScatterMin", "TensorScatterMin", "/scatter", "T", 3,
     UpdateForm::kRows},
    {"ResourceScatterNdAdd", "TensorScatterAdd", "/scatter", "T", 3},
    {"ResourceScatterNdSub", "TensorScatterSub", "/scatter", "T", 3},
    {"ResourceScatterNdUpdate", "TensorScatterUpdate", "/scatter", "T", 3},
    {"ResourceScatterNdMax", "TensorScatterMax", "/scatter", "T", 3},
    {"ResourceScatterNdMin", "TensorScatterMin", "/scatter", "T", 3},
    {"ResourceStridedSliceAssign", "TensorStridedSliceUpdate", "/slice", "T",
     5},
};
inline constexpr VariableOp kReadOps[] = {
    {"ResourceGather", "GatherV2", "", "Tparams", 2},
    {"ResourceGatherNd", "GatherNd", "", "Tparams", 2},
};

// A node that updates variables, and the nodes that replace it.
struct VariableUpdate {
  Node node;
  const VariableOp* kind;             // Either this or
  const kernel::UpdateOp* update_op;  // this is not null.
  DataType dtype, index_type;
  std::string math_device;
  std::vector<Node> reads;  // Set by Lower: one for each variable.

  size_t num_variables() const {
    return update_op != nullptr ? update_op->num_variables : 1;
  }
};

// Replaces an update in a graph.
class UpdateLowering {
 public:
  UpdateLowering(Graph& graph, VariableUpdate& update)
      : graph_(graph), update_(update), node_(update.node) {}

  absl::Status Lower() {
    for (size_t i = 0; i < update_.num_variables(); ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Node read, AddRead(static_cast<int>(i)));
      update_.reads.push_back(read);
    }
    return update_.update_op != nullptr ? LowerToNewValues() : LowerToMath();
  }

  // Adds a read of the variable that is input `variable`. It runs when the
  // update would have run.
  absl::StatusOr<Node> AddRead(int variable) {
    TFPLUG_ASSIGN_OR_RETURN(const Node read,
                            AddNode("/read", "ReadVariableOp", node_.device()));
    read.SetAttr("dtype", update_.dtype);
    TFPLUG_RETURN_IF_ERROR(read.AddInput(node_.input(variable)));
    for (int i = 0; i < node_.num_controls(); ++i) {
      TFPLUG_RETURN_IF_ERROR(read.AddControl(node_.control(i)));
    }
    // The update ran after its data inputs, and so must the read. The node's
    // control edges may not include all of these, because TensorFlow removes
    // control edges that are parallel to data edges.
    for (int i = num_variables(); i < node_.num_inputs(); ++i) {
      TFPLUG_RETURN_IF_ERROR(read.AddControl(node_.input(i).node));
    }
    if (node_.HasAttr("_class")) {
      TFPLUG_RETURN_IF_ERROR(read.CopyAttr(node_, "_class"));
    }
    return read;
  }

  // Adds a scalar constant on the update's device. A control input from the
  // index places it in the same loop as the index.
  absl::StatusOr<Node> AddScalar(const char* suffix, int32_t value) {
    TFPLUG_ASSIGN_OR_RETURN(const Node added,
                            AddNode(suffix, "Const", update_.math_device));
    added.SetAttr("dtype", DataType::kInt32);
    added.SetTensor("value", TensorView<const int32_t, 0>(&value, {}));
    TFPLUG_RETURN_IF_ERROR(added.AddControl(node_.input(1).node));
    return added;
  }

 private:
  int num_variables() const {
    return static_cast<int>(update_.num_variables());
  }

  absl::StatusOr<Node> AddNode(const char* suffix, absl::string_view op,
                               absl::string_view device) {
    auto added = graph_.AddNode(
        graph_.UniqueName(std::string(node_.name()) + suffix), op);
    if (added.ok()) added->SetDevice(device);
    return added;
  }

  // Adds the tensor with another dimension of 1, the first or, if `axis` is -1,
  // the last one.
  absl::StatusOr<Output> AddDimension(const char* suffix, Output tensor,
                                      DataType type, int32_t axis) {
    TFPLUG_ASSIGN_OR_RETURN(
        const Node dim, AddScalar(axis < 0 ? "/last_dim" : "/first_dim", axis));
    TFPLUG_ASSIGN_OR_RETURN(const Node added,
                            AddNode(suffix, "ExpandDims", update_.math_device));
    added.SetAttr("T", type);
    added.SetAttr("Tdim", DataType::kInt32);
    TFPLUG_RETURN_IF_ERROR(added.SetInputs({tensor, dim}));
    return Output(added);
  }

  // Adds the index with a last dimension of 1, as the TensorScatter ops
  // require, and a first one: they accept no slices of rank 0, which a scalar
  // index into a vector has.
  absl::StatusOr<Output> AddIndex() {
    TFPLUG_ASSIGN_OR_RETURN(
        const Output index,
        AddDimension("/indices", node_.input(1), update_.index_type, 0));
    return AddDimension("/index", index, update_.index_type, -1);
  }

  // Adds the op that computes the new value, and assigns it.
  absl::Status LowerToMath() {
    const VariableOp& kind = *update_.kind;
    TFPLUG_ASSIGN_OR_RETURN(
        const Node math,
        AddNode(kind.math_suffix, kind.math_op, update_.math_device));
    TFPLUG_RETURN_IF_ERROR(math.AddInput(update_.reads[0]));
    if (kind.form == UpdateForm::kRows) {
      TFPLUG_ASSIGN_OR_RETURN(const Output index, AddIndex());
      // The index has a first dimension of 1, see AddIndex().
      TFPLUG_ASSIGN_OR_RETURN(
          const Output slices,
          AddDimension("/slices", node_.input(2), update_.dtype, 0));
      math.SetAttr("Tindices", update_.index_type);
      TFPLUG_RETURN_IF_ERROR(math.AddInput(index));
      TFPLUG_RETURN_IF_ERROR(math.AddInput(slices));
    } else {
      if (kind.form == UpdateForm::kSame) CopyAttrs(math);
      for (int i = 1; i < node_.num_inputs(); ++i) {
        TFPLUG_RETURN_IF_ERROR(math.AddInput(node_.input(i)));
      }
    }
    math.SetAttr("T", update_.dtype);
    // Keeps the colocation with the variable.
    if (node_.HasAttr("_class") && update_.math_device == node_.device()) {
      TFPLUG_RETURN_IF_ERROR(math.CopyAttr(node_, "_class"));
    }
    return BecomeAssignment(math);
  }

  // Copies the attributes that the op on values has as well.
  void CopyAttrs(Node math) {
    for (const auto& [name, value] : node_.GetAttrs()) {
      if (!absl::StartsWith(name, "_") && name != "use_locking" &&
          name != "bad_indices_policy") {
        math.SetRawAttr(name, value);
      }
    }
  }

  // Adds the op that computes all new values, and assigns each: the first one
  // last, under the node's name.
  absl::Status LowerToNewValues() {
    const kernel::UpdateOp& op = *update_.update_op;
    TFPLUG_ASSIGN_OR_RETURN(const Node values,
                            AddNode("/values", op.values_op, node_.device()));
    for (const Node& read : update_.reads) {
      TFPLUG_RETURN_IF_ERROR(values.AddInput(read));
    }
    for (int i = num_variables(); i < node_.num_inputs(); ++i) {
      TFPLUG_RETURN_IF_ERROR(values.AddInput(node_.input(i)));
    }
    values.SetAttr("op", op.op);
    values.SetAttr("N", static_cast<int64_t>(op.num_variables));
    values.SetAttr("T", update_.dtype);
    values.SetAttr("Targs",
                   op.ArgumentTypes(update_.dtype, update_.index_type));
    const auto option = op.option != nullptr ? node_.GetAttr<bool>(op.option)
                                             : absl::StatusOr<bool>(false);
    if (!option.ok()) return option.status();
    values.SetAttr("option", *option);
    std::vector<Node> assignments;
    for (int i = 1; i < num_variables(); ++i) {
      TFPLUG_ASSIGN_OR_RETURN(
          const Node assign,
          AddNode("/assign", "AssignVariableOp", node_.device()));
      assign.SetAttr("dtype", update_.dtype);
      assign.SetAttr("validate_shape", true);
      TFPLUG_RETURN_IF_ERROR(
          assign.SetInputs({node_.input(i), Output(values, i)}));
      assignments.push_back(assign);
    }
    TFPLUG_RETURN_IF_ERROR(BecomeAssignment(values));
    for (const Node& assign : assignments) {
      TFPLUG_RETURN_IF_ERROR(node_.AddControl(assign));
    }
    return absl::OkStatus();
  }

  absl::Status BecomeAssignment(Node value) {
    std::vector<std::string> excess;
    for (const auto& [name, bytes] : node_.GetAttrs()) {
      if (!absl::StartsWith(name, "_")) excess.emplace_back(name);
    }
    for (const std::string& name : excess) node_.RemoveAttr(name);
    node_.SetOp("AssignVariableOp");
    node_.SetAttr("dtype", update_.dtype);
    // Keeps the update's check that the shapes agree.
    node_.SetAttr("validate_shape", true);
    return node_.SetInputs({node_.input(0), value});
  }

  Graph& graph_;
  VariableUpdate& update_;
  const Node node_;
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_VARIABLE_UPDATE_H_
