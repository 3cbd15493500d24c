// SPDX-License-Identifier: Apache-2.0
#include <tfplug/register_kernel.h>
#include <tfplug/status_macros.h>

#include <cstdint>
#include <string>

#include "cpu_sim.h"
#include "kernels/elementwise.h"
#include "kernels/reduction.h"

namespace cpu_sim {
namespace {

// Which dimension of a tensor holds the channels.
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
      return absl::InvalidArgumentError(
          "want two dimensions or more, and a channel among them; the tensor "
          "is " +
          x.shape().ToString());
    }
    return channels_first_ ? 1 : x.rank() - 1;
  }

  // Strides with which a vector of channels is read along with `x`.
  static Dims ChannelStrides(const tfplug::Tensor& x, int axis) {
    Dims strides(static_cast<size_t>(x.rank()), 0);
    strides[static_cast<size_t>(axis)] = 1;
    return strides;
  }

 private:
  bool channels_first_ = false;
};

constexpr auto kAdd = [](const auto& a, const auto& b) { return a + b; };

class BiasAdd final : public ChannelKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.input(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor bias, context.input(1));
    TFPLUG_ASSIGN_OR_RETURN(const int axis, ChannelAxis(x));
    if (bias.rank() != 1 || bias.dim(0) != x.dim(axis)) {
      return absl::InvalidArgumentError("want a bias for each of the " +
                                        std::to_string(x.dim(axis)) +
                                        " channels of " + x.shape().ToString() +
                                        ", not " + bias.shape().ToString());
    }
    const tfplug::Shape shape = x.shape();
    const Dims dense = DenseStrides(shape.dims());
    TFPLUG_ASSIGN_OR_RETURN(
        const Loop<3> loop,
        (MakeLoop<3>(shape.dims(), {dense, dense, ChannelStrides(x, axis)})));
    const auto in = x.flat<float>();
    x = tfplug::Tensor();  // let go, so that y may take its buffer over
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.forward_or_allocate_output(0, {0}, shape));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.stream<Stream>());
    return stream->Launch(&DoElementwise<kAdd, float, float, float>, loop,
                          y.flat<float>(), in, bias.flat<float>());
  }
};
TFPLUG_REGISTER_KERNEL(BiasAdd,
                       tfplug::KernelDef("BiasAdd").TypeConstraint<float>("T"));

class BiasAddGrad final : public ChannelKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dy, context.input(0));
    TFPLUG_ASSIGN_OR_RETURN(const int axis, ChannelAxis(dy));
    const tfplug::Shape shape = dy.shape();
    TFPLUG_ASSIGN_OR_RETURN(
        const Loop<2> loop,
        (MakeLoop<2>(shape.dims(),
                     {ChannelStrides(dy, axis), DenseStrides(shape.dims())})));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dbias,
                            context.allocate_output(0, {dy.dim(axis)}));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.stream<Stream>());
    return stream->Launch(&Reduce<SumReducer<float>, float>, loop,
                          dbias.flat<float>(), dbias.num_elements(),
                          dy.flat<float>());
  }
};
TFPLUG_REGISTER_KERNEL(
    BiasAddGrad, tfplug::KernelDef("BiasAddGrad").TypeConstraint<float>("T"));

}  // namespace
}  // namespace cpu_sim
