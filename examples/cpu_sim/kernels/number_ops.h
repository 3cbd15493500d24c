// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_NUMBER_OPS_H_
#define CPU_SIM_KERNELS_NUMBER_OPS_H_

#include <tfplug/base/narrow_types.h>
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>

#include "kernels/loop.h"
#include "kernels/simd.h"

// Kernels for the elementwise ops of simd.h, for float, for half and bfloat16,
// which are computed in float and rounded once at the end, and partly for
// int64. The functions are not templates, which would be compiled for each op
// and type.
namespace cpu_sim {

// Runs on the device. Tensor 0 of the loop is y, which is dense.
void DoBinary(const Loop<3>& loop, Binary op, float* y, const float* a,
              const float* b);

// Return whether the op supports int64.
constexpr bool IsOfIntegers(Unary op) {
  return op == Unary::kNeg || op == Unary::kAbs || op == Unary::kSquare;
}
constexpr bool IsOfIntegers(Binary op) {
  return op == Binary::kAdd || op == Binary::kSub || op == Binary::kMul ||
         op == Binary::kSquaredDifference || op == Binary::kMaximum ||
         op == Binary::kMinimum;
}

// Computes output 0 = op(inputs 0, ...), all of one type.
absl::Status Compute(tfplug::KernelContext& context, tfplug::DataType type,
                     Unary op);
absl::Status Compute(tfplug::KernelContext& context, tfplug::DataType type,
                     Binary op);

class NumberKernel : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(type_, construction.GetAttr<tfplug::DataType>("T"));
    return absl::OkStatus();
  }

 protected:
  tfplug::DataType type_{};
};

template <auto op>
class NumberOp final : public NumberKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    return cpu_sim::Compute(context, type_, op);
  }
};

// Registers a kernel for the op `name`, with Types as its attribute T.
template <auto op, typename... Types>
bool RegisterNumbers(const char* name) {
  static_assert(IsOfIntegers(op) || (!std::is_same_v<Types, int64_t> && ...));
  return tfplug::RegisterKernel<NumberOp<op>>(
      tfplug::KernelDef(name).TypeConstraint<Types...>("T"));
}
template <auto op>
bool RegisterFloats(const char* name) {
  return RegisterNumbers<op, float, tfplug::Half, tfplug::BFloat16>(name);
}
template <auto op>
bool RegisterFloatsAndIntegers(const char* name) {
  return RegisterNumbers<op, float, tfplug::Half, tfplug::BFloat16, int64_t>(
      name);
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_NUMBER_OPS_H_
