// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_NEW_VALUES_H_
#define TFPLUG_KERNEL_NEW_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/internal/update_ops.h"
#include "tfplug/kernel/kernel_construction.h"
#include "tfplug/kernel/op_def.h"

#pragma GCC visibility push(hidden)

// TensorFlow 2.19 to 2.21 export no function with which a kernel can update a
// variable. LowerVariableUpdates and Python's glue therefore replace an update
// by reads, an op that computes the new values from the old ones, and
// assignments.
namespace tfplug {

// The ops that compute new values, for optimizers (op_kernels/training.h) and
// for slices (op_kernels/resource_slices.h). The names carry the version of
// their attributes, so that plug-ins made with different versions of tfplug
// share a process.
inline constexpr char kNewTrainingValuesOp[] = "TfplugNewTrainingValuesV1";
inline constexpr char kNewSlicesOp[] = "TfplugNewSlicesV1";

// Defines such an op. Its inputs are those of TensorFlow's op `op`, with values
// in place of the variables.
inline OpDef NewValuesOp(const char* name) {
  return OpDef(name)
      .Attr("op: string")
      .Attr("N: int >= 1")
      .Attr("T: type")
      .Attr("Targs: list(type) >= 1")
      .Attr("option: bool = false")
      .Input("variables: N * T")
      .Input("arguments: Targs")
      .Output("values: N * T")
      .AllowExisting();
}

namespace kernel {

// The attributes of NewValuesOp(), validated.
struct NewValuesAttrs {
  const UpdateOp* op;
  DataType type, index_type;
  bool option;

  static absl::StatusOr<NewValuesAttrs> Read(KernelConstruction& construction) {
    NewValuesAttrs attrs = {nullptr, {}, DataType::kInt64, false};
    TFPLUG_ASSIGN_OR_RETURN(const auto values_op, construction.GetOp());
    TFPLUG_ASSIGN_OR_RETURN(const auto name,
                            construction.GetAttr<std::string>("op"));
    for (const UpdateOp& op : UpdateOps()) {
      if (op.op == name && op.values_op == values_op) attrs.op = &op;
    }
    if (attrs.op == nullptr) {
      return absl::InvalidArgumentError("op " + name + " is no update that " +
                                        values_op + " computes");
    }
    TFPLUG_ASSIGN_OR_RETURN(attrs.type, construction.GetAttr<DataType>("T"));
    TFPLUG_ASSIGN_OR_RETURN(attrs.option, construction.GetAttr<bool>("option"));
    TFPLUG_ASSIGN_OR_RETURN(const auto n, construction.GetAttr<int64_t>("N"));
    TFPLUG_ASSIGN_OR_RETURN(
        const auto types, construction.GetAttr<std::vector<DataType>>("Targs"));
    if (attrs.op->indices != UpdateOp::kNone) {
      const size_t i = attrs.op->indices - attrs.op->num_variables;
      if (i < types.size() && types[i] == DataType::kInt32) {
        attrs.index_type = DataType::kInt32;
      }
    }
    if (n == static_cast<int64_t>(attrs.op->num_variables) &&
        types == attrs.op->ArgumentTypes(attrs.type, attrs.index_type)) {
      return attrs;
    }
    return absl::InvalidArgumentError(
        "N or Targs do not describe the inputs of " + name);
  }
};

}  // namespace kernel
}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_NEW_VALUES_H_
