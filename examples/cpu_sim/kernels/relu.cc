// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/nn.h>

#include <cmath>
#include <cstdint>

#include "cpu_sim.h"
#include "kernels/elementwise.h"
#include "kernels/simd.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// Relu and Relu6. A limit of NaN means no limit; see simd.h.
template <bool is_relu6>
struct Clamp {
  static constexpr float kLimit = is_relu6 ? 6 : NAN;

  absl::Status Init(tfplug::KernelConstruction& /*construction*/) {
    return absl::OkStatus();
  }
  void Forward(int64_t size, const float* x, float* y) const {
    Simd().clamp(size, kLimit, x, y);
  }
  void Gradient(int64_t size, const float* dy, const float* x,
                float* dx) const {
    Simd().clamp_gradient(size, kLimit, dy, x, dx);
  }
};

struct Leaky {
  absl::Status Init(tfplug::KernelConstruction& construction) {
    TFPLUG_ASSIGN_OR_RETURN(alpha, construction.GetAttr<float>("alpha"));
    return absl::OkStatus();
  }
  void Forward(int64_t size, const float* x, float* y) const {
    const ConstRowMap<float> in(x, size);
    RowMap<float>(y, size) = (in > 0).select(in, in * alpha);
  }
  void Gradient(int64_t size, const float* dy, const float* x,
                float* dx) const {
    const ConstRowMap<float> in(x, size), gradient(dy, size);
    RowMap<float>(dx, size) = (in > 0).select(gradient, gradient * alpha);
  }

  float alpha = 0;
};

template <class Function>
class ReluKernel : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    return function_.Init(construction);
  }

 protected:
  Function function_;
};

template <class Function>
class Relu final : public ReluKernel<Function> {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::Relu;  // Relu6 and LeakyRelu have the same arguments
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::features));
    const tfplug::Shape shape = x.shape();
    const auto in = x.flat<float>();
    x = tfplug::Tensor();  // released so that y can reuse its buffer
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.ForwardOrAllocateOutput(
                                Op::activations, {Op::features}, shape));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(
        [function = this->function_](int64_t size, const float* x, float* y) {
          function.Forward(size, x, y);
        },
        y.num_elements(), in, y.flat<float>());
  }
};

template <class Function>
class ReluGrad final : public ReluKernel<Function> {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::ReluGrad;  // the others have the same arguments
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dy, context.GetInput(Op::gradients));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::features));
    const tfplug::Shape shape = x.shape();
    if (dy.shape() != shape) {
      return absl::InvalidArgumentError(
          "gradients and features must have the same shape, not " +
          dy.shape().ToString() + " and " + shape.ToString());
    }
    const auto gradient = dy.flat<float>(), in = x.flat<float>();
    dy = tfplug::Tensor();  // released so that dx can reuse its buffer
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor dx,
        context.ForwardOrAllocateOutput(Op::backprops, {Op::gradients}, shape));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(
        [function = this->function_](int64_t size, const float* dy,
                                     const float* x, float* dx) {
          function.Gradient(size, dy, x, dx);
        },
        dx.num_elements(), gradient, in, dx.flat<float>());
  }
};

TFPLUG_REGISTER_KERNEL(Relu<Clamp<false>>, ops::Relu().T<float>());
TFPLUG_REGISTER_KERNEL(Relu<Clamp<true>>, ops::Relu6().T<float>());
TFPLUG_REGISTER_KERNEL(Relu<Leaky>, ops::LeakyRelu().T<float>());
TFPLUG_REGISTER_KERNEL(ReluGrad<Clamp<false>>, ops::ReluGrad().T<float>());
TFPLUG_REGISTER_KERNEL(ReluGrad<Clamp<true>>, ops::Relu6Grad().T<float>());
TFPLUG_REGISTER_KERNEL(ReluGrad<Leaky>, ops::LeakyReluGrad().T<float>());

}  // namespace
}  // namespace cpu_sim
