// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/nn.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cpu_sim.h"
#include "kernels/movement.h"
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
    channels_first_ = format == "NCHW" || format == "NCDHW";
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<BatchNorm> Sizes(const tfplug::Shape& x) const {
    if (x.rank() != 4 && x.rank() != 5) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input must be 4- or 5-dimensional, not ", x.ToString()));
    }
    const int axis = channels_first_ ? 1 : x.rank() - 1;
    BatchNorm norm{1, x.dim(axis), epsilon_, average_factor_};
    for (int d = 0; d < x.rank(); ++d) {
      if (d != axis) norm.rows *= x.dim(d);
    }
    return norm;
  }

  // Returns x with the channels last, as the functions of simd.h require.
  absl::StatusOr<tfplug::Tensor> ChannelsLast(tfplug::KernelContext& context,
                                              Stream& stream,
                                              tfplug::Tensor x) const {
    if (!channels_first_) return x;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y, MakeTemp(context, x.shape()));
    const int64_t images = x.dim(0), channels = x.dim(1);
    const int64_t pixels = PixelsOf(x.shape());
    TFPLUG_RETURN_IF_ERROR(SwapDims(stream, {images, channels, pixels}, y, x));
    return y;
  }

  // Allocates a tensor for a result with the channels last. Returns an empty
  // Tensor if the output itself has the channels last.
  absl::StatusOr<tfplug::Tensor> MakeTemp(tfplug::KernelContext& context,
                                          const tfplug::Shape& shape) const {
    if (!channels_first_) return tfplug::Tensor();
    return context.AllocateTemp(tfplug::DataType::kFloat, shape);
  }

  // Copies the result from `temp` to `out`, unless `temp` is empty.
  absl::Status Finish(Stream& stream, const tfplug::Tensor& out,
                      const tfplug::Tensor& temp) const {
    if (!channels_first_) return absl::OkStatus();
    return SwapDims(stream, {out.dim(0), PixelsOf(out.shape()), out.dim(1)},
                    out, temp);
  }

 private:
  static int64_t PixelsOf(const tfplug::Shape& shape) {
    int64_t pixels = 1;
    for (int d = 2; d < shape.rank(); ++d) pixels *= shape.dim(d);
    return pixels;
  }

  // Copies x of shape `dims` to y with the last two dimensions swapped.
  static absl::Status SwapDims(Stream& stream, const Dims& dims,
                               const tfplug::Tensor& y,
                               const tfplug::Tensor& x) {
    const Dims swapped = {dims[0], dims[2], dims[1]};
    TFPLUG_ASSIGN_OR_RETURN(
        const Loop<2> loop,
        (MakeLoop<2>(swapped, {DenseStrides(swapped),
                               Dims{dims[1] * dims[2], 1, dims[2]}})));
    if (loop.is_empty()) return absl::OkStatus();
    return stream.Launch(&CopyElements, loop, int64_t{sizeof(float)}, Bytes(y),
                         Bytes(x));
  }

 protected:
  bool channels_first_ = false;
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

    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor out,
                            context.AllocateOutput(Op::y, x.shape()));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor temp,
                            MakeTemp(context, x.shape()));
    const tfplug::Tensor& y = channels_first_ ? temp : out;
    if (context.num_outputs() > kReserveSpace3) {
      TFPLUG_RETURN_IF_ERROR(
          context.AllocateOutput(kReserveSpace3, {0}).status());
    }
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    TFPLUG_ASSIGN_OR_RETURN(x, ChannelsLast(context, *stream, std::move(x)));
    // Without rows the statistics are NaN, in inference too.
    if (!is_training_ && norm.rows > 0) {
      for (const int output : {Op::batch_mean, Op::reserve_space_1}) {
        TFPLUG_RETURN_IF_ERROR(context.SetOutput(output, mean));
      }
      for (const int output : {Op::batch_variance, Op::reserve_space_2}) {
        TFPLUG_RETURN_IF_ERROR(context.SetOutput(output, variance));
      }
      TFPLUG_RETURN_IF_ERROR(stream->Launch(
          Simd().batch_norm.inference, norm, x.flat<float>(),
          scale.flat<float>(), offset.flat<float>(), mean.flat<float>(),
          variance.flat<float>(), y.flat<float>()));
      return Finish(*stream, out, temp);
    }
    // The outputs of the op have the order of the function's arguments.
    std::array<tfplug::Tensor, 4> statistics;
    int output = Op::batch_mean;
    for (tfplug::Tensor& statistic : statistics) {
      TFPLUG_ASSIGN_OR_RETURN(statistic,
                              context.AllocateOutput(output++, channels));
    }
    TFPLUG_RETURN_IF_ERROR(stream->Launch(
        Simd().batch_norm.training, norm, x.flat<float>(), scale.flat<float>(),
        offset.flat<float>(), mean.flat<float>(), variance.flat<float>(),
        y.flat<float>(), statistics[0].flat<float>(),
        statistics[1].flat<float>(), statistics[2].flat<float>(),
        statistics[3].flat<float>()));
    return Finish(*stream, out, temp);
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

    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor out,
                            context.AllocateOutput(Op::x_backprop, x.shape()));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor temp,
                            MakeTemp(context, x.shape()));
    const tfplug::Tensor& dx = channels_first_ ? temp : out;
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
    TFPLUG_ASSIGN_OR_RETURN(dy, ChannelsLast(context, *stream, std::move(dy)));
    TFPLUG_ASSIGN_OR_RETURN(x, ChannelsLast(context, *stream, std::move(x)));
    const BatchNormCode& code = Simd().batch_norm;
    TFPLUG_RETURN_IF_ERROR(stream->Launch(
        is_training_ ? code.training_gradient : code.inference_gradient, norm,
        dy.flat<float>(), x.flat<float>(), scale.flat<float>(),
        mean.flat<float>(), variance.flat<float>(), dx.flat<float>(),
        dscale.flat<float>(), doffset.flat<float>()));
    return Finish(*stream, out, temp);
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
