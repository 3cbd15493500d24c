// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/nn.h>

#include <cstdint>

#include "cpu_sim.h"
#include "kernels/host_tensor.h"
#include "kernels/simd.h"
#include "kernels/window.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// What the three have in common: the window, and memory to work in.
class ConvolutionKernel : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    return window_.Init(construction);
  }

 protected:
  static absl::StatusOr<tfplug::Tensor> Workspace(
      tfplug::KernelContext& context, const Conv2D& conv) {
    return context.AllocateTemp(tfplug::DataType::kFloat, {WorkspaceOf(conv)});
  }

  SlidingWindow window_;
};

class Convolution final : public ConvolutionKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::Conv2D;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::input));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor filter,
                            context.GetInput(Op::filter));
    TFPLUG_ASSIGN_OR_RETURN(const Conv2D conv,
                            window_.Convolve(x.shape(), filter.shape()));
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor y,
        context.AllocateOutput(Op::output, OutputShape(conv)));
    if (y.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor work, Workspace(context, conv));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(Simd().conv2d.forward, conv, Epilogue(),
                          x.flat<float>(), filter.flat<float>(),
                          y.flat<float>(), work.flat<float>());
  }
};
TFPLUG_REGISTER_KERNEL(Convolution, ops::Conv2D().T<float>());

class InputGradient final : public ConvolutionKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::Conv2DBackpropInput;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor sizes,
                            context.GetInput(Op::input_sizes));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor filter,
                            context.GetInput(Op::filter));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dy,
                            context.GetInput(Op::out_backprop));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Shape shape, ReadShape(sizes));
    TFPLUG_ASSIGN_OR_RETURN(const Conv2D conv,
                            window_.Convolve(shape, filter.shape()));
    TFPLUG_RETURN_IF_ERROR(
        CheckShape("out_backprop", dy.shape(), OutputShape(conv)));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dx,
                            context.AllocateOutput(Op::output, shape));
    if (dx.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor work, Workspace(context, conv));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(Simd().conv2d.input_gradient, conv,
                          filter.flat<float>(), dy.flat<float>(),
                          dx.flat<float>(), work.flat<float>());
  }
};
TFPLUG_REGISTER_KERNEL(InputGradient,
                       ops::Conv2DBackpropInput().T<float>().HostMemory(
                           ops::Conv2DBackpropInput::input_sizes));

class FilterGradient final : public ConvolutionKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::Conv2DBackpropFilter;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::input));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor sizes,
                            context.GetInput(Op::filter_sizes));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dy,
                            context.GetInput(Op::out_backprop));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Shape shape, ReadShape(sizes));
    TFPLUG_ASSIGN_OR_RETURN(const Conv2D conv,
                            window_.Convolve(x.shape(), shape));
    TFPLUG_RETURN_IF_ERROR(
        CheckShape("out_backprop", dy.shape(), OutputShape(conv)));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dfilter,
                            context.AllocateOutput(Op::output, shape));
    if (dfilter.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor work, Workspace(context, conv));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(Simd().conv2d.filter_gradient, conv, x.flat<float>(),
                          dy.flat<float>(), dfilter.flat<float>(),
                          work.flat<float>());
  }
};
TFPLUG_REGISTER_KERNEL(FilterGradient,
                       ops::Conv2DBackpropFilter().T<float>().HostMemory(
                           ops::Conv2DBackpropFilter::filter_sizes));

}  // namespace
}  // namespace cpu_sim
