// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_FLOAT_OPS_H_
#define CPU_SIM_KERNELS_FLOAT_OPS_H_

#include <tfplug/narrow_types.h>
#include <tfplug/register_kernel.h>

#include "kernels/loop.h"
#include "kernels/simd.h"

// Kernels for the element-wise ops of simd.h: of float, and of half and
// bfloat16, which are computed in float and rounded once at the end.
namespace cpu_sim {

// On the device. Tensor 0 of the loop is y, which is dense.
void DoBinary(const Loop<3>& loop, Binary op, float* y, const float* a,
              const float* b);

// Output 0 = op(inputs 0, ...), which are of type T. For float, Half, BFloat16.
template <typename T>
absl::Status ComputeFloatOp(tfplug::KernelContext& context, Unary op);
template <typename T>
absl::Status ComputeFloatOp(tfplug::KernelContext& context, Binary op);

template <typename T, auto op>
class FloatOp final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    return ComputeFloatOp<T>(context, op);
  }
};

// Adds a kernel for the op of this name, for each of Types as its attribute T.
template <auto op, typename... Types>
bool RegisterFloatOp(const char* name) {
  return (tfplug::RegisterKernel<FloatOp<Types, op>>(
              tfplug::KernelDef(name).TypeConstraint<Types>("T")) &&
          ...);
}
// For all three types.
template <auto op>
bool RegisterFloatOps(const char* name) {
  return RegisterFloatOp<op, float, tfplug::Half, tfplug::BFloat16>(name);
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_FLOAT_OPS_H_
