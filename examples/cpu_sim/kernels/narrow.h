// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_NARROW_H_
#define CPU_SIM_KERNELS_NARROW_H_

#include <tfplug/base/narrow_types.h>
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/kernel_context.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "cpu_sim.h"

// Half and bfloat16 are computed in float and rounded once at the end.
namespace cpu_sim {

// Converts half or bfloat16 elements to float or back, on the device.
template <typename To, typename From>
void Convert(To* y, const From* x, int64_t size) {
  std::transform(x, x + size, y, [](From value) { return To(value); });
}

// ---- On the host -----------------------------------------------------------

template <typename T>
constexpr bool kIsNarrow =
    std::is_same_v<T, tfplug::Half> || std::is_same_v<T, tfplug::BFloat16>;

// Return an input, or output 0, as a float tensor: the tensor itself, or a
// temporary one if T is narrow.
template <typename T>
absl::StatusOr<tfplug::Tensor> FloatInput(tfplug::KernelContext& context,
                                          int index, Stream& stream) {
  TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(index));
  if constexpr (!kIsNarrow<T>) {
    return x;
  } else {
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor wide,
        context.AllocateTemp(tfplug::DataType::kFloat, x.shape()));
    TFPLUG_RETURN_IF_ERROR(stream.Launch(&Convert<float, T>, wide.flat<float>(),
                                         x.flat<T>(), x.num_elements()));
    return wide;
  }
}

template <typename T>
absl::StatusOr<tfplug::Tensor> FloatOutput(tfplug::KernelContext& context,
                                           absl::Span<const int> candidates,
                                           const tfplug::Shape& shape) {
  if constexpr (!kIsNarrow<T>) {
    return context.ForwardOrAllocateOutput(0, candidates, shape);
  } else {
    return context.AllocateTemp(tfplug::DataType::kFloat, shape);
  }
}

// Converts y to output 0 if T is narrow.
template <typename T>
absl::Status FinishFloat(tfplug::KernelContext& context, Stream& stream,
                         const tfplug::Tensor& y) {
  if constexpr (!kIsNarrow<T>) {
    return absl::OkStatus();
  } else {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor narrow,
                            context.AllocateOutput(0, y.shape()));
    return stream.Launch(&Convert<T, float>, narrow.flat<T>(), y.flat<float>(),
                         y.num_elements());
  }
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_NARROW_H_
