// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_CHECK_NUMERICS_H_
#define TFPLUG_OP_KERNELS_CHECK_NUMERICS_H_

#include <string>

#include "tfplug/op_kernels/device_then_read_kernel.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace op_kernels_internal {

// CheckNumerics and CheckNumericsV2: fails if an element is infinite or NaN.
class CheckNumericsKernel final : public DeviceThenReadKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(message_,
                            construction.GetAttr<std::string>("message"));
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    constexpr DataType kInt64 = DataType::kInt64;
    TFPLUG_ASSIGN_OR_RETURN(
        count_, primitives::MakeReduction(
                    ReduceKind::kSum, {type}, kInt64,
                    [](Value x) {
                      const Value infinite = Abs(x) == Infinity(x);
                      return Cast(infinite, DataType::kInt64) +
                             Cast(IsNan(x), DataType::kInt64) * kNan;
                    },
                    kInt64));
    return absl::OkStatus();
  }

  absl::StatusOr<Operand> Begin(OpRun& run) const override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand count,
                            run.launcher().Allocate(DataType::kInt64, {1}));
    Operand total = count;
    total.rank = 0;
    TFPLUG_RETURN_IF_ERROR(run.launcher().Reduce(count_, {x}, {total}));
    return count;
  }

  absl::Status End(OpRun& run, const Operand& /*vector*/,
                   absl::Span<const int64_t> numbers) const override {
    const int64_t count = numbers[0];
    if (count != 0) {
      const char* const found = count < kNan        ? "Inf"
                                : count % kNan == 0 ? "NaN"
                                                    : "Inf and NaN";
      return absl::InvalidArgumentError(message_ + " : Tensor had " + found +
                                        " values");
    }
    TFPLUG_ASSIGN_OR_RETURN(const Tensor x, run.GetInput(0));
    return run.context().SetOutput(0, x);
  }

 private:
  // The weight of a NaN in the number that is read back.
  static constexpr int64_t kNan = int64_t{1} << 31;
  std::string message_;
  Reduction count_;
};

}  // namespace op_kernels_internal

inline void CheckNumericsOps(const Registrar& registrar) {
  for (const char* op : {"CheckNumerics", "CheckNumericsV2"}) {
    registrar.Add<op_kernels_internal::CheckNumericsKernel>(KernelDef(op), "T",
                                                            kFloatTypes);
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_CHECK_NUMERICS_H_
