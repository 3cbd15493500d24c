// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SEQUENCE_H_
#define TFPLUG_OP_KERNELS_SEQUENCE_H_

#include <string>

#include "tfplug/ir/scalar_code.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace op_kernels_internal {

// LinSpace: `num` values from start to stop, inclusive.
class LinSpaceKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(type_, GetType(construction));
    const DataType computed = ComputeType(type_);
    constexpr DataType kInt64 = DataType::kInt64;
    TFPLUG_ASSIGN_OR_RETURN(
        expression_,
        MakeExpression(
            {kInt64, kInt64, computed, computed, computed}, {type_},
            [&](Value i, Value last, Value start, Value stop, Value step) {
              // The first element is exact, also if the step is infinite.
              const Value between = start + step * Cast(i, computed);
              return Select(i == 0, start, Select(i == last, stop, between));
            }));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    double bounds[2];
    for (int i = 0; i < 2; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Tensor x, run.GetInput(i));
      if (x.rank() != 0) {
        return absl::InvalidArgumentError(
            std::string(i == 0 ? "start" : "stop") +
            " must be a scalar, not shape " + x.shape().ToString());
      }
      ir::VisitStored(x.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        bounds[i] = static_cast<double>(*static_cast<const T*>(x.data()));
      });
    }
    TFPLUG_ASSIGN_OR_RETURN(const int64_t size, run.GetScalar(2));
    if (size <= 0) {
      return absl::InvalidArgumentError("Requires num > 0: " +
                                        std::to_string(size));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, {size}));
    const auto [start, stop] = bounds;
    // A single value is start.
    double step = size > 1 ? (stop - start) / static_cast<double>(size - 1) : 0;
    const DataType computed = ComputeType(type_);
    if (computed == DataType::kFloat) {  // TensorFlow rounds the difference.
      step = static_cast<float>(stop - start) /
             static_cast<float>(size > 1 ? size - 1 : 1);
    }
    const Operand last = ir::ScalarOf(
        DataType::kInt64, static_cast<double>(size > 1 ? size - 1 : -1), y);
    return run.launcher().Map(
        expression_,
        {ir::IndexOf(y, 0), last, ir::ScalarOf(computed, start, y),
         ir::ScalarOf(computed, stop, y), ir::ScalarOf(computed, step, y)},
        {y});
  }

 private:
  DataType type_{};
  Expression expression_;
};

}  // namespace op_kernels_internal

inline void SequenceOps(const Registrar& registrar) {
  registrar.Add<op_kernels_internal::LinSpaceKernel>(
      KernelDef("LinSpace")
          .TypeConstraint<int32_t, int64_t>("Tidx")
          .HostMemory("start")
          .HostMemory("stop")
          .HostMemory("num"),
      "T", kFloatTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_SEQUENCE_H_
