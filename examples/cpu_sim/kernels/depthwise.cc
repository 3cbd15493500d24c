// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/nn.h>

#include "cpu_sim.h"
#include "kernels/host_tensor.h"
#include "kernels/simd.h"
#include "kernels/window.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

class DepthwiseKernel : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    return window_.Init(construction);
  }

 protected:
  SlidingWindow window_;
};

class Depthwise final : public DepthwiseKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::DepthwiseConv2dNative;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::input));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor filter,
                            context.GetInput(Op::filter));
    TFPLUG_ASSIGN_OR_RETURN(const Conv2D conv, window_.ConvolveDepthwise(
                                                   x.shape(), filter.shape()));
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor y,
        context.AllocateOutput(Op::output, OutputShape(conv)));
    if (y.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(Simd().depthwise.forward, conv, Epilogue(),
                          x.flat<float>(), filter.flat<float>(),
                          y.flat<float>());
  }
};
TFPLUG_REGISTER_KERNEL(Depthwise, ops::DepthwiseConv2dNative().T<float>());

class InputGradient final : public DepthwiseKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::DepthwiseConv2dNativeBackpropInput;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor sizes,
                            context.GetInput(Op::input_sizes));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor filter,
                            context.GetInput(Op::filter));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dy,
                            context.GetInput(Op::out_backprop));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Shape shape, ReadShape(sizes));
    TFPLUG_ASSIGN_OR_RETURN(const Conv2D conv,
                            window_.ConvolveDepthwise(shape, filter.shape()));
    TFPLUG_RETURN_IF_ERROR(
        CheckShape("out_backprop", dy.shape(), OutputShape(conv)));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dx,
                            context.AllocateOutput(Op::output, shape));
    if (dx.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(Simd().depthwise.input_gradient, conv,
                          filter.flat<float>(), dy.flat<float>(),
                          dx.flat<float>());
  }
};
TFPLUG_REGISTER_KERNEL(
    InputGradient,
    ops::DepthwiseConv2dNativeBackpropInput().T<float>().HostMemory(
        ops::DepthwiseConv2dNativeBackpropInput::input_sizes));

class FilterGradient final : public DepthwiseKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::DepthwiseConv2dNativeBackpropFilter;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::input));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor sizes,
                            context.GetInput(Op::filter_sizes));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dy,
                            context.GetInput(Op::out_backprop));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Shape shape, ReadShape(sizes));
    TFPLUG_ASSIGN_OR_RETURN(const Conv2D conv,
                            window_.ConvolveDepthwise(x.shape(), shape));
    TFPLUG_RETURN_IF_ERROR(
        CheckShape("out_backprop", dy.shape(), OutputShape(conv)));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dfilter,
                            context.AllocateOutput(Op::output, shape));
    if (dfilter.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(Simd().depthwise.filter_gradient, conv,
                          x.flat<float>(), dy.flat<float>(),
                          dfilter.flat<float>());
  }
};
TFPLUG_REGISTER_KERNEL(
    FilterGradient,
    ops::DepthwiseConv2dNativeBackpropFilter().T<float>().HostMemory(
        ops::DepthwiseConv2dNativeBackpropFilter::filter_sizes));

}  // namespace
}  // namespace cpu_sim
