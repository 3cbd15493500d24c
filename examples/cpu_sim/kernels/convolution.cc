// SPDX-License-Identifier: Apache-2.0
#include "kernels/convolution.h"

#include <tfplug/kernel/register_kernel.h>

#include "kernels/host_tensor.h"

namespace cpu_sim {
namespace {

class ConvolutionKernel : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    return window_.Init(construction);
  }

 protected:
  SlidingWindow window_;
};

template <class Kind>
class Convolution final : public ConvolutionKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = typename Kind::Forward;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::input));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor filter,
                            context.GetInput(Op::filter));
    TFPLUG_ASSIGN_OR_RETURN(const Conv2D conv,
                            Kind::Describe(window_, x.shape(), filter.shape()));
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor y,
        context.AllocateOutput(Op::output, OutputShape(conv)));
    if (y.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return LaunchConvolution<Kind>(context, *stream, conv, Kind::Code().forward,
                                   conv, Epilogue(), x.flat<float>(),
                                   filter.flat<float>(), y.flat<float>());
  }
};

template <class Kind>
class InputGradient final : public ConvolutionKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = typename Kind::InputGradient;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor sizes,
                            context.GetInput(Op::input_sizes));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor filter,
                            context.GetInput(Op::filter));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dy,
                            context.GetInput(Op::out_backprop));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Shape shape, ReadShape(sizes));
    TFPLUG_ASSIGN_OR_RETURN(const Conv2D conv,
                            Kind::Describe(window_, shape, filter.shape()));
    TFPLUG_RETURN_IF_ERROR(
        CheckShape("out_backprop", dy.shape(), OutputShape(conv)));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dx,
                            context.AllocateOutput(Op::output, shape));
    if (dx.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return LaunchConvolution<Kind>(
        context, *stream, conv, Kind::Code().input_gradient, conv,
        filter.flat<float>(), dy.flat<float>(), dx.flat<float>());
  }
};

template <class Kind>
class FilterGradient final : public ConvolutionKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = typename Kind::FilterGradient;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::input));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor sizes,
                            context.GetInput(Op::filter_sizes));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dy,
                            context.GetInput(Op::out_backprop));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Shape shape, ReadShape(sizes));
    TFPLUG_ASSIGN_OR_RETURN(const Conv2D conv,
                            Kind::Describe(window_, x.shape(), shape));
    TFPLUG_RETURN_IF_ERROR(
        CheckShape("out_backprop", dy.shape(), OutputShape(conv)));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dfilter,
                            context.AllocateOutput(Op::output, shape));
    if (dfilter.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return LaunchConvolution<Kind>(
        context, *stream, conv, Kind::Code().filter_gradient, conv,
        x.flat<float>(), dy.flat<float>(), dfilter.flat<float>());
  }
};

template <class Kind>
bool Register() {
  using Input = typename Kind::InputGradient;
  using Filter = typename Kind::FilterGradient;
  return tfplug::RegisterKernel<Convolution<Kind>>(
             typename Kind::Forward().template T<float>()) &&
         tfplug::RegisterKernel<InputGradient<Kind>>(
             Input().template T<float>().HostMemory(Input::input_sizes)) &&
         tfplug::RegisterKernel<FilterGradient<Kind>>(
             Filter().template T<float>().HostMemory(Filter::filter_sizes));
}
[[maybe_unused]] const bool kernels =
    Register<FullConvolution>() && Register<DepthwiseConvolution>();

}  // namespace
}  // namespace cpu_sim
