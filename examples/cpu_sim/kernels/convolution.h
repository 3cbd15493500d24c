// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_CONVOLUTION_H_
#define CPU_SIM_KERNELS_CONVOLUTION_H_

#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/kernel_context.h>
#include <tfplug/ops/internal.h>
#include <tfplug/ops/nn.h>

#include "cpu_sim.h"
#include "kernels/simd.h"
#include "kernels/window.h"

// The ops and device functions of the two kinds of convolution.
namespace cpu_sim {

// Every output channel depends on all input channels of its group.
struct FullConvolution {
  using Forward = tfplug::ops::Conv2D;
  using Fused = tfplug::ops::InternalFusedConv2D;
  using InputGradient = tfplug::ops::Conv2DBackpropInput;
  using FilterGradient = tfplug::ops::Conv2DBackpropFilter;
  static constexpr bool kNeedsWorkspace = true;

  static const Conv2DCode& Code() { return Simd().conv2d; }
  static absl::StatusOr<Conv2D> Describe(const SlidingWindow& window,
                                         const tfplug::Shape& images,
                                         const tfplug::Shape& filter) {
    return window.Convolve(images, filter);
  }
};

// Every output channel depends on one input channel.
struct DepthwiseConvolution {
  using Forward = tfplug::ops::DepthwiseConv2dNative;
  using Fused = tfplug::ops::InternalFusedDepthwiseConv2dNative;
  using InputGradient = tfplug::ops::DepthwiseConv2dNativeBackpropInput;
  using FilterGradient = tfplug::ops::DepthwiseConv2dNativeBackpropFilter;
  static constexpr bool kNeedsWorkspace = false;

  static const DepthwiseCode& Code() { return Simd().depthwise; }
  static absl::StatusOr<Conv2D> Describe(const SlidingWindow& window,
                                         const tfplug::Shape& images,
                                         const tfplug::Shape& filter) {
    return window.ConvolveDepthwise(images, filter);
  }
};

// Launches a function of Kind::Code(), with a workspace as its last argument if
// the kind needs one.
template <class Kind, class Function, class... Arguments>
absl::Status LaunchConvolution(tfplug::KernelContext& context, Stream& stream,
                               const Conv2D& conv, const Function& function,
                               const Arguments&... arguments) {
  if constexpr (Kind::kNeedsWorkspace) {
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor workspace,
        context.AllocateTemp(tfplug::DataType::kFloat, {WorkspaceOf(conv)}));
    return stream.Launch(function, arguments..., workspace.flat<float>());
  } else {
    return stream.Launch(function, arguments...);
  }
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_CONVOLUTION_H_
