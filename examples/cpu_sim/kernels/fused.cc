// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/internal.h>

#include <cstdint>

#include "cpu_sim.h"
#include "kernels/convolution.h"
#include "kernels/fused_ops.h"
#include "kernels/matrix_product.h"
#include "kernels/simd.h"

// Products whose bias, normalization and activation are applied before the
// result leaves the cache. Only graph passes create these ops.
namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// The index of the first fused argument: in all releases, these follow the two
// operands of the product.
constexpr int kFirstArgument = 2;

template <class Kind>
class FusedConvolution final : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_RETURN_IF_ERROR(fused_.Init(construction));
    return window_.Init(construction);
  }

  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = typename Kind::Fused;
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
    TFPLUG_ASSIGN_OR_RETURN(
        const FusedOps::Arguments arguments,
        fused_.Prepare(context, kFirstArgument, conv.out_depth, *stream));
    return LaunchConvolution<Kind>(
        context, *stream, conv,
        [conv, fused = fused_](const float* scale, const float* shift,
                               auto*... tensors) {
          Kind::Code().forward(conv, fused.MakeEpilogue(scale, shift),
                               tensors...);
        },
        arguments.scale, arguments.shift, x.flat<float>(), filter.flat<float>(),
        y.flat<float>());
  }

 private:
  SlidingWindow window_;
  FusedOps fused_;
};
TFPLUG_REGISTER_KERNEL(FusedConvolution<FullConvolution>,
                       ops::InternalFusedConv2D().T<float>());
TFPLUG_REGISTER_KERNEL(FusedConvolution<DepthwiseConvolution>,
                       ops::InternalFusedDepthwiseConv2dNative().T<float>());

class FusedMatMul final : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_RETURN_IF_ERROR(fused_.Init(construction));
    return operands_.Init(construction);
  }

  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::InternalFusedMatMul;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor a, context.GetInput(Op::a));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor b, context.GetInput(Op::b));
    TFPLUG_ASSIGN_OR_RETURN(const MatrixProduct product,
                            operands_.Multiply(a.shape(), b.shape()));
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor c,
        context.AllocateOutput(Op::product, {product.m, product.n}));
    if (c.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    TFPLUG_ASSIGN_OR_RETURN(
        const FusedOps::Arguments arguments,
        fused_.Prepare(context, kFirstArgument, product.n, *stream));
    return stream->Launch(
        [product, fused = fused_](const float* scale, const float* shift,
                                  const float* a, const float* b, float* c) {
          product.Run(a, b, c);
          Simd().apply(fused.MakeEpilogue(scale, shift), product.m, product.n,
                       c, c);
        },
        arguments.scale, arguments.shift, a.flat<float>(), b.flat<float>(),
        c.flat<float>());
  }

 private:
  MatrixOperands operands_;
  FusedOps fused_;
};
TFPLUG_REGISTER_KERNEL(FusedMatMul, ops::InternalFusedMatMul().T<float>());

}  // namespace
}  // namespace cpu_sim
