// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/nn.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "cpu_sim.h"
#include "kernels/number_ops.h"
#include "kernels/reduction.h"
#include "kernels/simd.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// Reads data_format, which determines the dimension of the channels.
class ChannelKernel : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string format,
                            construction.GetAttr<std::string>("data_format"));
    channels_first_ = format == "NCHW";
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<int> ChannelAxis(const tfplug::Tensor& x) const {
    if (x.rank() < 2) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Input tensor must be at least 2D: ", x.shape().ToString()));
    }
    return channels_first_ ? 1 : x.rank() - 1;
  }

  // Returns the strides that broadcast a vector of channels to `x`.
  static Dims ChannelStrides(const tfplug::Tensor& x, int axis) {
    Dims strides(static_cast<size_t>(x.rank()), 0);
    strides[static_cast<size_t>(axis)] = 1;
    return strides;
  }

  // Returns whether adjacent elements belong to adjacent channels.
  bool is_interleaved() const { return !channels_first_; }

 private:
  bool channels_first_ = false;
};

class BiasAdd final : public ChannelKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::BiasAdd;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::value));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor bias, context.GetInput(Op::bias));
    TFPLUG_ASSIGN_OR_RETURN(const int axis, ChannelAxis(x));
    const tfplug::Shape shape = x.shape();
    const int64_t channels = shape.dim(axis);
    if (bias.rank() != 1 || bias.dim(0) != channels) {
      return absl::InvalidArgumentError(absl::StrCat(
          "bias must have one element per channel of ", shape.ToString(),
          ", not shape ", bias.shape().ToString()));
    }
    const Dims dense = DenseStrides(shape.dims());
    TFPLUG_ASSIGN_OR_RETURN(
        const Loop<3> loop,
        (MakeLoop<3>(shape.dims(), {dense, dense, ChannelStrides(x, axis)})));
    const auto in = x.flat<float>();
    x = tfplug::Tensor();  // released so that y can reuse its buffer
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor y,
        context.ForwardOrAllocateOutput(Op::output, {Op::value}, shape));
    if (y.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    if (is_interleaved()) {
      return stream->Launch(
          [rows = y.num_elements() / channels, channels](
              const float* x, const float* bias, float* y) {
            const Epilogue add{nullptr, bias, Activation::kNone, 0};
            Simd().apply(add, rows, channels, x, y);
          },
          in, bias.flat<float>(), y.flat<float>());
    }
    return stream->Launch(&DoBinary, loop, Binary::kAdd, y.flat<float>(), in,
                          bias.flat<float>());
  }
};
TFPLUG_REGISTER_KERNEL(BiasAdd, ops::BiasAdd().T<float>());

class BiasAddGrad final : public ChannelKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::BiasAddGrad;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dy,
                            context.GetInput(Op::out_backprop));
    TFPLUG_ASSIGN_OR_RETURN(const int axis, ChannelAxis(dy));
    const tfplug::Shape shape = dy.shape();
    const int64_t channels = shape.dim(axis);
    TFPLUG_ASSIGN_OR_RETURN(
        const Loop<2> loop,
        (MakeLoop<2>(shape.dims(),
                     {ChannelStrides(dy, axis), DenseStrides(shape.dims())})));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dbias,
                            context.AllocateOutput(Op::output, {channels}));
    if (channels == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    if (is_interleaved()) {
      return stream->Launch(Simd().sum_rows, dy.num_elements() / channels,
                            channels, dy.flat<float>(), dbias.flat<float>());
    }
    return stream->Launch(&SumFloats, loop, dbias.flat<float>(),
                          dbias.num_elements(), dy.flat<float>());
  }
};
TFPLUG_REGISTER_KERNEL(BiasAddGrad, ops::BiasAddGrad().T<float>());

}  // namespace
}  // namespace cpu_sim
