// SPDX-License-Identifier: Apache-2.0
#include <tfplug/register_kernel.h>
#include <tfplug/status_macros.h>

#include <algorithm>
#include <cstdint>

#include "cpu_sim.h"
#include "kernels/host_tensor.h"
#include "kernels/movement.h"

namespace cpu_sim {
namespace {

// The value lies on the device, so only the device can read it.
template <typename T>
class Fill final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dims, context.input(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor value, context.input(1));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Shape shape, ReadShape(dims));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.allocate_output(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.stream<Stream>());
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
[[maybe_unused]] const bool fills = RegisterFill<float, int64_t, bool>();

template <Place place>
class ZerosLike final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.input(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.allocate_output(0, x.shape()));
    return Clear<place>(context, y);
  }
};
TFPLUG_REGISTER_KERNEL(ZerosLike<Place::kDevice>,
                       tfplug::KernelDef("ZerosLike")
                           .TypeConstraint<float, double, int64_t, bool>("T"));
// Core's own, for every device, has x in device memory, where eagerly it is
// not.
TFPLUG_REGISTER_KERNEL(ZerosLike<Place::kHost>,
                       tfplug::KernelDef("ZerosLike")
                           .TypeConstraint<int32_t>("T")
                           .HostMemory("x")
                           .HostMemory("y"));

template <typename T>
class OnesLike final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.input(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.allocate_output(0, x.shape()));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.stream<Stream>());
    return stream->Launch(
        [](T* y, int64_t size) { std::fill_n(y, size, T(1)); }, y.flat<T>(),
        y.num_elements());
  }
};
TFPLUG_REGISTER_KERNEL(
    OnesLike<float>, tfplug::KernelDef("OnesLike").TypeConstraint<float>("T"));
TFPLUG_REGISTER_KERNEL(OnesLike<int64_t>, tfplug::KernelDef("OnesLike")
                                              .TypeConstraint<int64_t>("T"));

}  // namespace
}  // namespace cpu_sim
