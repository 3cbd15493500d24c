// SPDX-License-Identifier: Apache-2.0
#include <tfplug/ops/array.h>

#include <cstdint>

#include "absl/algorithm/container.h"
#include "kernels/host_tensor.h"
#include "kernels/movement.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// Reverses x in the dimensions `axis`.
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

[[maybe_unused]] const bool kernels =
    RegisterMovement<ReverseV2, ops::ReverseV2>(
        std::tuple(ops::ReverseV2::axis), ops::ReverseV2::tensor,
        ops::ReverseV2::output);

}  // namespace
}  // namespace cpu_sim
