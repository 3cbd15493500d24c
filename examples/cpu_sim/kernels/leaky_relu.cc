// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/nn.h>

#include <cstdint>

#include "cpu_sim.h"
#include "kernels/elementwise.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

class LeakyKernel : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(alpha_, construction.GetAttr<float>("alpha"));
    return absl::OkStatus();
  }

 protected:
  float alpha_ = 0;
};

class LeakyRelu final : public LeakyKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::LeakyRelu;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::features));
    const tfplug::Shape shape = x.shape();
    const auto in = x.flat<float>();
    x = tfplug::Tensor();  // let go, so that y may take its buffer over
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.ForwardOrAllocateOutput(0, {0}, shape));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(
        [alpha = alpha_](const float* x, float* y, int64_t size) {
          const ConstRowMap<float> in(x, size);
          RowMap<float>(y, size) = (in > 0).select(in, in * alpha);
        },
        in, y.flat<float>(), y.num_elements());
  }
};
TFPLUG_REGISTER_KERNEL(LeakyRelu, ops::LeakyRelu().T<float>());

class LeakyReluGrad final : public LeakyKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::LeakyReluGrad;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dy, context.GetInput(Op::gradients));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::features));
    if (dy.shape() != x.shape()) {
      return absl::InvalidArgumentError(
          "gradients and features must have the same shape, not " +
          dy.shape().ToString() + " and " + x.shape().ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dx,
                            context.AllocateOutput(Op::backprops, x.shape()));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(
        [alpha = alpha_](const float* dy, const float* x, float* dx,
                         int64_t size) {
          const ConstRowMap<float> in(x, size), gradient(dy, size);
          RowMap<float>(dx, size) = (in > 0).select(gradient, gradient * alpha);
        },
        dy.flat<float>(), x.flat<float>(), dx.flat<float>(), dx.num_elements());
  }
};
TFPLUG_REGISTER_KERNEL(LeakyReluGrad, ops::LeakyReluGrad().T<float>());

}  // namespace
}  // namespace cpu_sim
