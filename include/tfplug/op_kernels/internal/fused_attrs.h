// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_FUSED_ATTRS_H_
#define TFPLUG_OP_KERNELS_INTERNAL_FUSED_ATTRS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/ir/compose.h"
#include "tfplug/ir/serialize.h"
#include "tfplug/kernel/fused_map_ops.h"
#include "tfplug/kernel/kernel_construction.h"
#include "tfplug/op_kernels/internal/fused_shapes.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

[[gnu::cold, gnu::noinline]] inline absl::Status MalformedFusedOp(
    const std::string& problem) {
  return absl::InvalidArgumentError(
      "the fused op is malformed: " + problem +
      "; only the pass FuseElementwise of the same library may create it");
}

// A cluster of element-wise ops, from the attributes of a fused op.
struct ClusterAttrs {
  Expression expression;
  FusedShapes shapes;

  // Reads the attributes with these names. The inputs must have the types of
  // the attribute, after `first`, and the outputs `outputs`. Each input is
  // needed for an output.
  static absl::StatusOr<ClusterAttrs> Read(
      KernelConstruction& construction, const FusedMapAttrs& names,
      std::vector<DataType> first, const std::vector<DataType>& outputs);
};

// Returns whether each input of an element-wise expression is needed.
inline absl::Status CheckInputs(const Expression& expression) {
  for (const Instruction& in : expression.instructions()) {
    if (in.opcode == Opcode::kElement) {
      return MalformedFusedOp("its expression reads an input at an index");
    }
  }
  const std::vector<bool> needed =
      ir::NeededFor(expression, ir::OutputValues(expression));
  std::vector<bool> is_used(expression.inputs().size());
  for (size_t i = 0; i < needed.size(); ++i) {
    const Instruction& in = expression.instructions()[i];
    if (needed[i] && in.opcode == Opcode::kInput) {
      is_used[static_cast<size_t>(in.a)] = true;
    }
  }
  if (std::find(is_used.begin(), is_used.end(), false) == is_used.end()) {
    return absl::OkStatus();
  }
  return MalformedFusedOp("no output depends on one of its inputs");
}

inline absl::StatusOr<std::vector<FusedShapes::Check>> ReadChecks(
    const std::vector<int64_t>& numbers, size_t num_values) {
  if (numbers.size() % 3 != 0) {
    return MalformedFusedOp("its checks are no triples");
  }
  const auto is_value = [&](int64_t value) {
    return value >= 0 && value < static_cast<int64_t>(num_values);
  };
  std::vector<FusedShapes::Check> checks;
  for (size_t i = 0; i < numbers.size(); i += 3) {
    const int64_t kind = numbers[i], a = numbers[i + 1], b = numbers[i + 2];
    if (kind < 0 || kind >= kNumShapeChecks || !is_value(a) || !is_value(b)) {
      return MalformedFusedOp("a check is unknown, or refers to no value");
    }
    checks.push_back({static_cast<ShapeCheck>(kind), static_cast<int32_t>(a),
                      static_cast<int32_t>(b)});
  }
  return checks;
}

inline absl::StatusOr<ClusterAttrs> ClusterAttrs::Read(
    KernelConstruction& construction, const FusedMapAttrs& names,
    std::vector<DataType> first, const std::vector<DataType>& outputs) {
  TFPLUG_ASSIGN_OR_RETURN(
      const auto types,
      construction.GetAttr<std::vector<DataType>>(names.types));
  TFPLUG_ASSIGN_OR_RETURN(const auto text,
                          construction.GetAttr<std::string>(names.expression));
  TFPLUG_ASSIGN_OR_RETURN(
      const auto numbers,
      construction.GetAttr<std::vector<int64_t>>(names.checks));
  ClusterAttrs cluster;
  TFPLUG_ASSIGN_OR_RETURN(cluster.expression, ParseExpression(text));
  const Expression& expression = cluster.expression;
  first.insert(first.end(), types.begin(), types.end());
  if (expression.inputs() != first) {
    return MalformedFusedOp("its expression has inputs of other types");
  }
  if (!std::equal(outputs.begin(), outputs.end(), expression.outputs().begin(),
                  expression.outputs().end(),
                  [](DataType type, const Expression::Output& output) {
                    return type == output.type;
                  })) {
    return MalformedFusedOp("its expression has outputs of other types");
  }
  TFPLUG_RETURN_IF_ERROR(CheckInputs(expression));
  TFPLUG_ASSIGN_OR_RETURN(
      const auto checks, ReadChecks(numbers, expression.instructions().size()));
  cluster.shapes = FusedShapes(expression, checks);
  return cluster;
}

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_FUSED_ATTRS_H_
