// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_FUSED_PROGRAM_H_
#define TFPLUG_OP_KERNELS_INTERNAL_FUSED_PROGRAM_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/ir/value.h"
#include "tfplug/kernel/fused_map.h"
#include "tfplug/kernel/kernel_construction.h"
#include "tfplug/op_kernels/elementwise.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// The expression of some of the results of a FusedMap. Rounds after each step
// as the step's own kernel does when it stores its output, so that the results
// are the same.
struct FusedProgram {
  Expression expression;
  std::vector<int> inputs;  // those of the FusedMap that it uses, in order

  // Adds value 0 to an expression, instead of an input of its type.
  using MakeFirst = std::function<Value(ExpressionBuilder&)>;

  // The map is valid, as ReadFusedMap returns it. `stored`: the type as which
  // results are stored, if it is not their own.
  static absl::StatusOr<FusedProgram> Make(const FusedMap& map,
                                           const std::vector<int>& results,
                                           DataType stored = DataType(0),
                                           const MakeFirst& first = nullptr);
};

// Fails unless the library computes the step, which may use the values that
// precede value `i`, its own.
inline absl::Status CheckFusedStep(const FusedMap::Step& step, size_t i) {
  const auto n = static_cast<int>(step.args.size());
  const ElementwiseOp* const op = FindElementwise(step.op);
  const bool is_known = step.op == "Const"     ? n == 0
                        : step.op == "Cast"    ? n == 1
                        : step.op == "Select"  ? n == 3
                        : step.op == "BiasAdd" ? n == 2
                        : step.op == "AddN"
                            ? n > 0
                            : op != nullptr && op->formula.arity() == n;
  if (!is_known) {
    return absl::InvalidArgumentError(
        "the fused op has a step " + step.op + " with " + std::to_string(n) +
        " inputs, which this library does not compute; it must be created by "
        "the pass FuseElementwise of the same library");
  }
  for (const int arg : step.args) {
    if (arg < 0 || static_cast<size_t>(arg) >= i) {
      return absl::InvalidArgumentError(
          "a step of the fused op refers to a value that does not precede it");
    }
  }
  return absl::OkStatus();
}

// Returns the FusedMap of an op that FuseElementwise created, from attributes
// with these names. `first` is the type of an input before the others, if there
// is one. Whatever the attributes are, indices of the result are in range, and
// the library computes each step.
inline absl::StatusOr<FusedMap> ReadFusedMap(
    KernelConstruction& construction,
    const FusedMapAttrs& names = kFusedMapAttrs, DataType first = DataType(0)) {
  FusedMap map;
  TFPLUG_ASSIGN_OR_RETURN(
      map.inputs, construction.GetAttr<std::vector<DataType>>(names.types));
  if (first != DataType(0)) map.inputs.insert(map.inputs.begin(), first);
  TFPLUG_ASSIGN_OR_RETURN(
      const auto steps,
      construction.GetAttr<std::vector<std::string>>(names.steps));
  size_t num_values = map.inputs.size();
  for (const std::string& text : steps) {
    TFPLUG_ASSIGN_OR_RETURN(FusedMap::Step step, FusedMap::ParseStep(text));
    TFPLUG_RETURN_IF_ERROR(CheckFusedStep(step, num_values++));
    map.steps.push_back(std::move(step));
  }
  TFPLUG_ASSIGN_OR_RETURN(
      const auto results,
      construction.GetAttr<std::vector<int64_t>>(names.results));
  for (const int64_t result : results) {
    if (result < 0 || static_cast<uint64_t>(result) >= num_values) {
      return absl::InvalidArgumentError(
          "a result of the fused op refers to a value that does not exist");
    }
    map.results.push_back(static_cast<int>(result));
  }
  if (map.results.empty()) {
    return absl::InvalidArgumentError("the fused op has no results");
  }
  return map;
}

// Builds a FusedProgram.
class FusedProgramBuilder {
 public:
  explicit FusedProgramBuilder(const FusedMap& map) : map_(map) {}

  absl::StatusOr<FusedProgram> Build(const std::vector<int>& results,
                                     DataType stored,
                                     const FusedProgram::MakeFirst& first) {
    const size_t n = map_.inputs.size() + map_.steps.size();
    std::vector<bool> needed(n);
    for (int result : results) needed[static_cast<size_t>(result)] = true;
    for (size_t i = n; i-- > map_.inputs.size();) {
      if (!needed[i]) continue;
      for (int arg : StepOf(i).args) needed[static_cast<size_t>(arg)] = true;
    }
    FusedProgram program;
    values_.assign(n, Value(&builder_, 0));
    types_.assign(n, DataType(0));
    for (size_t i = 0; i < n; ++i) {
      if (!needed[i]) continue;
      if (i < map_.inputs.size()) {
        types_[i] = map_.inputs[i];
        values_[i] = i == 0 && first ? Cast(first(builder_), types_[i])
                                     : builder_.Input(types_[i]);
        program.inputs.push_back(static_cast<int>(i));
      } else {
        AddStep(StepOf(i), i);
      }
    }
    for (int result : results) {
      const auto i = static_cast<size_t>(result);
      if (stored == DataType(0)) {
        builder_.Output(values_[i], types_[i]);
      } else {
        builder_.Output(Cast(values_[i], ComputeType(stored)), stored);
      }
    }
    TFPLUG_ASSIGN_OR_RETURN(program.expression, std::move(builder_).Build());
    return program;
  }

 private:
  const FusedMap::Step& StepOf(size_t value) const {
    return map_.steps[value - map_.inputs.size()];
  }
  void AddStep(const FusedMap::Step& step, size_t i) {
    if (step.op == "Const") {
      types_[i] = step.type;
      values_[i] = builder_.Add(
          {Opcode::kConstant, ComputeType(step.type), -1, -1, -1, step.bits});
      return;
    }
    std::vector<Value> x;
    for (int arg : step.args) x.push_back(values_[static_cast<size_t>(arg)]);
    const Value y = Apply(step, x);
    const bool gives_bool = y.type() == DataType::kBool;
    types_[i] = gives_bool ? DataType::kBool : step.type;
    const bool is_narrow = ComputeType(types_[i]) != types_[i];
    values_[i] = is_narrow ? Cast(y, types_[i]) : y;
  }

  static Value Apply(const FusedMap::Step& step, const std::vector<Value>& x) {
    if (step.op == "Cast") return Cast(x[0], ComputeType(step.type));
    if (step.op == "Select") return Select(x[0], x[1], x[2]);
    if (step.op == "BiasAdd") return x[0] + x[1];
    if (step.op == "AddN") {
      Value sum = x[0];
      for (size_t i = 1; i < x.size(); ++i) sum = sum + x[i];
      return sum;
    }
    double attr;
    std::memcpy(&attr, &step.bits, sizeof(attr));
    return FindElementwise(step.op)->formula(x, attr);
  }

  const FusedMap& map_;
  ExpressionBuilder builder_;
  std::vector<Value> values_;
  std::vector<DataType> types_;
};

inline absl::StatusOr<FusedProgram> FusedProgram::Make(
    const FusedMap& map, const std::vector<int>& results, DataType stored,
    const MakeFirst& first) {
  return FusedProgramBuilder(map).Build(results, stored, first);
}

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_FUSED_PROGRAM_H_
