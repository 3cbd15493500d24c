// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/nn.h>

#include <cmath>

#include "cpu_sim.h"
#include "kernels/simd.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// What is above this becomes this. See simd.h.
template <bool is_relu6>
constexpr float kLimit = is_relu6 ? 6 : NAN;

template <bool is_relu6>
class Relu final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::Relu;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::features));
    const tfplug::Shape shape = x.shape();
    const auto in = x.flat<float>();
    x = tfplug::Tensor();  // let go, so that y may take its buffer over
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.ForwardOrAllocateOutput(
                                Op::activations, {Op::features}, shape));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(Simd().clamp, y.num_elements(), kLimit<is_relu6>, in,
                          y.flat<float>());
  }
};
TFPLUG_REGISTER_KERNEL(Relu<false>, ops::Relu().T<float>());
TFPLUG_REGISTER_KERNEL(Relu<true>, ops::Relu6().T<float>());

template <bool is_relu6>
class ReluGrad final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::ReluGrad;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dy, context.GetInput(Op::gradients));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::features));
    const tfplug::Shape shape = x.shape();
    if (dy.shape() != shape) {
      return absl::InvalidArgumentError(
          "gradients and features must have the same shape, not " +
          dy.shape().ToString() + " and " + shape.ToString());
    }
    const auto gradient = dy.flat<float>(), in = x.flat<float>();
    dy = tfplug::Tensor();  // let go, so that dx may take its buffer over
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor dx,
        context.ForwardOrAllocateOutput(Op::backprops, {Op::gradients}, shape));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(Simd().clamp_gradient, dx.num_elements(),
                          kLimit<is_relu6>, gradient, in, dx.flat<float>());
  }
};
TFPLUG_REGISTER_KERNEL(ReluGrad<false>, ops::ReluGrad().T<float>());
TFPLUG_REGISTER_KERNEL(ReluGrad<true>, ops::Relu6Grad().T<float>());

}  // namespace
}  // namespace cpu_sim
