// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/narrow_types.h>
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>

#include <algorithm>
#include <cstdint>

#include "cpu_sim.h"
#include "kernels/host_tensor.h"
#include "kernels/movement.h"

namespace cpu_sim {
namespace {

// The value is in device memory, so the device has to read it.
template <typename T>
class Fill final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dims, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor value, context.GetInput(1));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Shape shape, ReadShape(dims));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y, context.AllocateOutput(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch([](T* y, int64_t size,
                             const T* value) { std::fill_n(y, size, *value); },
                          y.flat<T>(), y.num_elements(), value.flat<T>());
  }
};

template <typename... Types>
bool RegisterFill() {
  return (tfplug::RegisterKernel<Fill<Types>>(
              tfplug::KernelDef("Fill").TypeConstraint<Types>("T").HostMemory(
                  "dims")) &&
          ...);
}
[[maybe_unused]] const bool fills =
    RegisterFill<float, int64_t, bool, tfplug::Half, tfplug::BFloat16>();

template <Place place>
class ZerosLike final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.AllocateOutput(0, x.shape()));
    return Clear<place>(context, y);
  }
};
TFPLUG_REGISTER_KERNEL(
    ZerosLike<Place::kDevice>,
    tfplug::KernelDef("ZerosLike")
        .TypeConstraint<float, double, int64_t, bool, tfplug::Half,
                        tfplug::BFloat16>("T"));
// TensorFlow's kernel for every device expects x in device memory, but eager
// int32 tensors are in host memory.
TFPLUG_REGISTER_KERNEL(ZerosLike<Place::kHost>,
                       tfplug::KernelDef("ZerosLike")
                           .TypeConstraint<int32_t>("T")
                           .HostMemory("x")
                           .HostMemory("y"));

template <typename T, Place place>
class OnesLike final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.AllocateOutput(0, x.shape()));
    if constexpr (place == Place::kHost) {
      std::fill_n(y.flat<T>().data(), y.num_elements(), T(1));
      return absl::OkStatus();
    }
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(
        [](T* y, int64_t size) { std::fill_n(y, size, T(1)); }, y.flat<T>(),
        y.num_elements());
  }
};

template <typename... Types>
bool RegisterOnesLike() {
  return (tfplug::RegisterKernel<OnesLike<Types, Place::kDevice>>(
              tfplug::KernelDef("OnesLike").TypeConstraint<Types>("T")) &&
          ...);
}
using OnesLikeOnHost = OnesLike<int32_t, Place::kHost>;
[[maybe_unused]] const bool ones =
    RegisterOnesLike<float, int64_t, bool, tfplug::Half, tfplug::BFloat16>();
TFPLUG_REGISTER_KERNEL(OnesLikeOnHost, tfplug::KernelDef("OnesLike")
                                           .TypeConstraint<int32_t>("T")
                                           .HostMemory("x")
                                           .HostMemory("y"));

}  // namespace
}  // namespace cpu_sim
