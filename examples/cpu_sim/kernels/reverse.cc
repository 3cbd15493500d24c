// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/narrow_types.h>
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/array.h>

#include <cstdint>

#include "absl/algorithm/container.h"
#include "kernels/host_tensor.h"
#include "kernels/movement.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// x, read from the end to the beginning in the dimensions `axes`.
template <Place place>
class ReverseV2 final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x,
                            context.GetInput(ops::ReverseV2::tensor));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor axis_tensor,
                            context.GetInput(ops::ReverseV2::axis));
    TFPLUG_ASSIGN_OR_RETURN(const Dims axes, ReadAxes(axis_tensor, x.rank()));
    const tfplug::Shape shape = x.shape();
    const Dims dense = DenseStrides(shape.dims());
    Dims strides = dense;
    int64_t first = 0;
    for (const int64_t axis : axes) {
      if (strides[axis] != dense[axis]) {
        return absl::InvalidArgumentError("axis " + std::to_string(axis) +
                                          " specified more than once.");
      }
      first += (shape.dim(static_cast<int>(axis)) - 1) * dense[axis];
      strides[axis] = -dense[axis];
    }
    TFPLUG_ASSIGN_OR_RETURN(const Loop<2> loop,
                            (MakeLoop<2>(shape.dims(), {dense, strides})));
    return SetOutput<place>(context, shape, loop, x, first);
  }
};

TFPLUG_REGISTER_KERNEL(
    ReverseV2<Place::kDevice>,
    ops::ReverseV2()
        .T<float, double, tfplug::Half, tfplug::BFloat16, int64_t, bool>()
        .HostMemory(ops::ReverseV2::axis));
TFPLUG_REGISTER_KERNEL(ReverseV2<Place::kHost>,
                       ops::ReverseV2()
                           .T<int32_t>()
                           .HostMemory(ops::ReverseV2::tensor)
                           .HostMemory(ops::ReverseV2::axis)
                           .HostMemory(ops::ReverseV2::output));

}  // namespace
}  // namespace cpu_sim
