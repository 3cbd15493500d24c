// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_NARROW_H_
#define CPU_SIM_KERNELS_NARROW_H_

#include <tfplug/narrow_types.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/elementwise.h"

// Kernels that do one thing to each element of tensors of half or bfloat16: in
// float, and rounded once at the end.
namespace cpu_sim {

// ---- On the device ---------------------------------------------------------

template <typename To, typename From>
void Convert(To* y, const From* x, int64_t size) {
  std::transform(x, x + size, y, [](From value) { return To(value); });
}

// ---- On the host -----------------------------------------------------------

template <const auto& op, typename T, size_t n>
class NarrowElementwise final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    return Compute(context, std::make_index_sequence<n>());
  }

 private:
  template <size_t i>
  using Float = float;

  template <size_t... i>
  static absl::Status Compute(tfplug::KernelContext& context,
                              std::index_sequence<i...>) {
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.stream<Stream>());
    std::array<tfplug::Tensor, n> wide;
    std::array<tfplug::Shape, n> shapes;
    Dims shape;
    for (size_t k = 0; k < n; ++k) {
      TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x,
                              context.input(static_cast<int>(k)));
      shapes[k] = x.shape();
      TFPLUG_ASSIGN_OR_RETURN(shape, BroadcastShape(shape, shapes[k].dims()));
      TFPLUG_ASSIGN_OR_RETURN(
          wide[k], context.allocate_temp(tfplug::DataType::kFloat, shapes[k]));
      TFPLUG_RETURN_IF_ERROR(
          stream->Launch(&Convert<float, T>, wide[k].template flat<float>(),
                         x.template flat<T>(), x.num_elements()));
    }
    TFPLUG_ASSIGN_OR_RETURN(
        const auto loop,
        (MakeBroadcastLoop<n + 1>(shape, {shapes[i].dims()...})));
    const tfplug::Shape y_shape(shape);
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor result,
        context.allocate_temp(tfplug::DataType::kFloat, y_shape));
    TFPLUG_RETURN_IF_ERROR(stream->Launch(
        &DoElementwise<op, float, Float<i>...>, loop,
        result.template flat<float>(), wide[i].template flat<float>()...));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.allocate_output(0, y_shape));
    return stream->Launch(&Convert<T, float>, y.template flat<T>(),
                          result.template flat<float>(), y.num_elements());
  }
};

// Adds kernels for the op of this name, for both types as its attribute T.
template <const auto& op, size_t inputs>
bool RegisterNarrow(const char* name) {
  using tfplug::BFloat16, tfplug::Half;
  return tfplug::RegisterKernel<NarrowElementwise<op, Half, inputs>>(
             tfplug::KernelDef(name).TypeConstraint<Half>("T")) &&
         tfplug::RegisterKernel<NarrowElementwise<op, BFloat16, inputs>>(
             tfplug::KernelDef(name).TypeConstraint<BFloat16>("T"));
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_NARROW_H_
