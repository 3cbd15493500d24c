// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/nn.h>

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "cpu_sim.h"
#include "kernels/simd.h"
#include "kernels/window.h"

// FusedBatchNorm, V2 and V3, and their gradients. All versions have the same
// arguments in the same order; V3 has one more, which only cuDNN uses.
namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

class BatchNormKernel : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(epsilon_, construction.GetAttr<float>("epsilon"));
    TFPLUG_ASSIGN_OR_RETURN(is_training_,
                            construction.GetAttr<bool>("is_training"));
    if (construction.HasAttr("exponential_avg_factor")) {
      TFPLUG_ASSIGN_OR_RETURN(average_factor_, construction.GetAttr<float>(
                                                   "exponential_avg_factor"));
    }
    TFPLUG_ASSIGN_OR_RETURN(const std::string format,
                            construction.GetAttr<std::string>("data_format"));
    if (format == "NHWC" || format == "NDHWC") return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat(
        "data_format ", format,
        " is not implemented on this device; use NHWC (channels_last)"));
  }

 protected:
  absl::StatusOr<BatchNorm> Sizes(const tfplug::Shape& x) const {
    if (x.rank() != 4 && x.rank() != 5) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input must be 4 or 5-dimensional, and is ", x.ToString()));
    }
    BatchNorm norm{1, x.dim(x.rank() - 1), epsilon_, average_factor_};
    for (int d = 0; d < x.rank() - 1; ++d) norm.rows *= x.dim(d);
    return norm;
  }

  float epsilon_ = 0;
  float average_factor_ = 1;
  bool is_training_ = false;
};

class Normalize final : public BatchNormKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::FusedBatchNorm;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::x));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor scale, context.GetInput(Op::scale));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor offset,
                            context.GetInput(Op::offset));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor mean, context.GetInput(Op::mean));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor variance,
                            context.GetInput(Op::variance));
    TFPLUG_ASSIGN_OR_RETURN(const BatchNorm norm, Sizes(x.shape()));
    const tfplug::Shape channels{norm.depth};
    TFPLUG_RETURN_IF_ERROR(CheckShape("scale", scale.shape(), channels));
    TFPLUG_RETURN_IF_ERROR(CheckShape("offset", offset.shape(), channels));
    if (!is_training_ || average_factor_ != 1) {
      TFPLUG_RETURN_IF_ERROR(CheckShape("mean", mean.shape(), channels));
      TFPLUG_RETURN_IF_ERROR(
          CheckShape("variance", variance.shape(), channels));
    }

    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.AllocateOutput(Op::y, x.shape()));
    if (context.num_outputs() > kReserveSpace3) {
      TFPLUG_RETURN_IF_ERROR(
          context.AllocateOutput(kReserveSpace3, {0}).status());
    }
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    // Without rows the statistics are NaN, in inference too.
    if (!is_training_ && norm.rows > 0) {
      for (const int output : {Op::batch_mean, Op::reserve_space_1}) {
        TFPLUG_RETURN_IF_ERROR(context.SetOutput(output, mean));
      }
      for (const int output : {Op::batch_variance, Op::reserve_space_2}) {
        TFPLUG_RETURN_IF_ERROR(context.SetOutput(output, variance));
      }
      return stream->Launch(Simd().batch_norm.inference, norm, x.flat<float>(),
                            scale.flat<float>(), offset.flat<float>(),
                            mean.flat<float>(), variance.flat<float>(),
                            y.flat<float>());
    }
    // The op's output order is the function's argument order.
    std::array<tfplug::Tensor, 4> statistics;
    int output = Op::batch_mean;
    for (tfplug::Tensor& statistic : statistics) {
      TFPLUG_ASSIGN_OR_RETURN(statistic,
                              context.AllocateOutput(output++, channels));
    }
    return stream->Launch(
        Simd().batch_norm.training, norm, x.flat<float>(), scale.flat<float>(),
        offset.flat<float>(), mean.flat<float>(), variance.flat<float>(),
        y.flat<float>(), statistics[0].flat<float>(),
        statistics[1].flat<float>(), statistics[2].flat<float>(),
        statistics[3].flat<float>());
  }

 private:
  static constexpr int kReserveSpace3 = ops::FusedBatchNormV3::reserve_space_3;
};

class Gradient final : public BatchNormKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::FusedBatchNormGrad;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dy,
                            context.GetInput(Op::y_backprop));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::x));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor scale, context.GetInput(Op::scale));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor mean,
                            context.GetInput(Op::reserve_space_1));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor variance,
                            context.GetInput(Op::reserve_space_2));
    TFPLUG_ASSIGN_OR_RETURN(const BatchNorm norm, Sizes(x.shape()));
    const tfplug::Shape channels{norm.depth};
    TFPLUG_RETURN_IF_ERROR(CheckShape("y_backprop", dy.shape(), x.shape()));
    TFPLUG_RETURN_IF_ERROR(CheckShape("scale", scale.shape(), channels));
    TFPLUG_RETURN_IF_ERROR(
        CheckShape("reserve_space_1", mean.shape(), channels));
    TFPLUG_RETURN_IF_ERROR(
        CheckShape("reserve_space_2", variance.shape(), channels));

    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dx,
                            context.AllocateOutput(Op::x_backprop, x.shape()));
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor dscale,
        context.AllocateOutput(Op::scale_backprop, channels));
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor doffset,
        context.AllocateOutput(Op::offset_backprop, channels));
    // The moving averages have no gradient.
    for (const int output : {Op::reserve_space_3, Op::reserve_space_4}) {
      TFPLUG_RETURN_IF_ERROR(context.AllocateOutput(output, {0}).status());
    }
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    const BatchNormCode& code = Simd().batch_norm;
    return stream->Launch(
        is_training_ ? code.training_gradient : code.inference_gradient, norm,
        dy.flat<float>(), x.flat<float>(), scale.flat<float>(),
        mean.flat<float>(), variance.flat<float>(), dx.flat<float>(),
        dscale.flat<float>(), doffset.flat<float>());
  }
};

TFPLUG_REGISTER_KERNEL(Normalize, ops::FusedBatchNorm().T<float>());
TFPLUG_REGISTER_KERNEL(Normalize,
                       ops::FusedBatchNormV2().T<float>().U<float>());
TFPLUG_REGISTER_KERNEL(Normalize,
                       ops::FusedBatchNormV3().T<float>().U<float>());
TFPLUG_REGISTER_KERNEL(Gradient, ops::FusedBatchNormGrad().T<float>());
TFPLUG_REGISTER_KERNEL(Gradient,
                       ops::FusedBatchNormGradV2().T<float>().U<float>());
TFPLUG_REGISTER_KERNEL(Gradient,
                       ops::FusedBatchNormGradV3().T<float>().U<float>());

}  // namespace
}  // namespace cpu_sim
