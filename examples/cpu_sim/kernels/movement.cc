// SPDX-License-Identifier: Apache-2.0
#include "kernels/movement.h"

#include <tfplug/ops/array.h>

#include <cstdint>
#include <string>

#include "kernels/host_tensor.h"
#include "kernels/loop.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

template <Place place>
class BroadcastTo final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dims, context.GetInput(1));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Shape shape, ReadShape(dims));
    const tfplug::Shape x_shape = x.shape();
    TFPLUG_ASSIGN_OR_RETURN(
        const Loop<2> loop,
        MakeBroadcastLoop<2>(shape.dims(), {x_shape.dims()}));
    return SetOutput<place>(context, shape, loop, x);
  }
};

template <Place place>
class Tile final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor multiples_tensor,
                            context.GetInput(1));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Shape multiples,
                            ReadShape(multiples_tensor));
    if (multiples.rank() != x.rank()) {
      return absl::InvalidArgumentError(
          "multiples must have one element for each dimension of " +
          x.shape().ToString() + ", not " + multiples.ToString());
    }
    // Treats each dimension as two: the index of the copy, and the position in
    // it.
    const tfplug::Shape x_shape = x.shape();
    const Dims x_strides = DenseStrides(x_shape.dims());
    tfplug::Shape shape;
    Dims halves, strides;
    for (int d = 0; d < x.rank(); ++d) {
      shape.add_dim(multiples.dim(d) * x.dim(d));
      halves.insert(halves.end(), {multiples.dim(d), x.dim(d)});
      strides.insert(strides.end(), {0, x_strides[d]});
    }
    TFPLUG_ASSIGN_OR_RETURN(
        const Loop<2> loop,
        (MakeLoop<2>(halves, {DenseStrides(halves), strides})));
    return SetOutput<place>(context, shape, loop, x);
  }
};

template <Place place>
class Transpose final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor perm_tensor, context.GetInput(1));
    TFPLUG_ASSIGN_OR_RETURN(const Dims perm, ReadAxes(perm_tensor, x.rank()));
    const tfplug::Shape x_shape = x.shape();
    const Dims x_strides = DenseStrides(x_shape.dims());
    uint64_t seen = 0;
    tfplug::Shape shape;
    Dims strides;
    for (const int64_t d : perm) {
      seen |= uint64_t{1} << d;
      shape.add_dim(x_shape.dim(static_cast<int>(d)));
      strides.push_back(x_strides[d]);
    }
    if (shape.rank() != x.rank() || seen + 1 != uint64_t{1} << x.rank()) {
      return absl::InvalidArgumentError("perm must contain each dimension of " +
                                        x_shape.ToString() + " once, not " +
                                        tfplug::Shape(perm).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(
        const Loop<2> loop,
        (MakeLoop<2>(shape.dims(), {DenseStrides(shape.dims()), strides})));
    return SetOutput<place>(context, shape, loop, x);
  }
};

[[maybe_unused]] const bool kernels =
    RegisterMovement<BroadcastTo, ops::BroadcastTo>(
        std::tuple(ops::BroadcastTo::shape), ops::BroadcastTo::input,
        ops::BroadcastTo::output) &&
    RegisterMovement<Tile, ops::Tile>(std::tuple(ops::Tile::multiples),
                                      ops::Tile::input, ops::Tile::output) &&
    RegisterMovement<Transpose, ops::Transpose>(
        std::tuple(ops::Transpose::perm), ops::Transpose::x, ops::Transpose::y);

}  // namespace
}  // namespace cpu_sim
