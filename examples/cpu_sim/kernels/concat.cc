// SPDX-License-Identifier: Apache-2.0
#include <tfplug/ops/array.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/host_tensor.h"
#include "kernels/movement.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// True if the axis is the first input (Concat), false if it is the last
// (ConcatV2).
template <class Op>
constexpr bool kAxisIsFirst = false;
template <>
constexpr bool kAxisIsFirst<ops::Concat> = true;

template <class Op, Place place>
class Concat final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    const int count = context.num_inputs() - 1;
    const int first = kAxisIsFirst<Op> ? 1 : 0;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor axis_tensor,
                            context.GetInput(kAxisIsFirst<Op> ? 0 : count));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(first));
    TFPLUG_ASSIGN_OR_RETURN(const int axis, ReadAxis(axis_tensor, x.rank()));

    std::vector<tfplug::Tensor> pieces;
    tfplug::Shape shape = x.shape();
    shape.set_dim(axis, 0);
    for (int i = 0; i < count; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(x, context.GetInput(first + i));
      tfplug::Shape expected = shape;
      if (x.rank() == shape.rank()) expected.set_dim(axis, x.dim(axis));
      if (x.shape() != expected) {
        return absl::InvalidArgumentError(
            "input " + std::to_string(i) + " has shape " +
            x.shape().ToString() + ", and the inputs before it have " +
            shape.ToString() + "; they must agree except in dimension " +
            std::to_string(axis));
      }
      shape.set_dim(axis, shape.dim(axis) + x.dim(axis));
      pieces.push_back(std::move(x));
    }

    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y, context.AllocateOutput(0, shape));
    const Dims strides = DenseStrides(shape.dims());
    int64_t begin = 0;
    for (const tfplug::Tensor& piece : pieces) {
      const tfplug::Shape size = piece.shape();
      TFPLUG_ASSIGN_OR_RETURN(
          const Loop<2> loop,
          (MakeLoop<2>(size.dims(), {strides, DenseStrides(size.dims())})));
      TFPLUG_RETURN_IF_ERROR(
          Move<place>(context, loop, y, begin * strides[axis], piece, 0));
      begin += size.dim(axis);
    }
    return absl::OkStatus();
  }
};

template <Place place>
using ConcatV1 = Concat<ops::Concat, place>;
using ConcatV2 = Concat<ops::ConcatV2, Place::kDevice>;
[[maybe_unused]] const bool concats = RegisterMovement<ConcatV1, ops::Concat>(
    std::tuple(ops::Concat::concat_dim), ops::Concat::values,
    ops::Concat::output);
// TensorFlow has a kernel of ConcatV2 for int32 on every device.
TFPLUG_REGISTER_KERNEL(ConcatV2,
                       MovedOnDevice<ops::ConcatV2>(ops::ConcatV2::axis));

// Stacks tensors of one shape along a new dimension.
template <Place place>
class Pack final : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(axis_, construction.GetAttr(ops::Pack::axis));
    return absl::OkStatus();
  }

  absl::Status Compute(tfplug::KernelContext& context) override {
    const int count = context.num_inputs();
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(0));
    const tfplug::Shape x_shape = x.shape();
    TFPLUG_ASSIGN_OR_RETURN(const int axis, CheckAxis(axis_, x.rank() + 1));
    tfplug::Shape shape;
    for (int d = 0; d <= x_shape.rank(); ++d) {
      shape.add_dim(d == axis ? count : x_shape.dim(d < axis ? d : d - 1));
    }
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y, context.AllocateOutput(0, shape));

    Dims strides = DenseStrides(shape.dims());
    const int64_t step = strides[axis];
    strides.erase(strides.begin() + axis);
    TFPLUG_ASSIGN_OR_RETURN(
        const Loop<2> loop,
        (MakeLoop<2>(x_shape.dims(), {strides, DenseStrides(x_shape.dims())})));
    for (int i = 0; i < count; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(x, context.GetInput(i));
      if (x.shape() != x_shape) {
        return absl::InvalidArgumentError(
            "all inputs must have the same shape; input 0 is " +
            x_shape.ToString() + ", and input " + std::to_string(i) + " is " +
            x.shape().ToString());
      }
      TFPLUG_RETURN_IF_ERROR(Move<place>(context, loop, y, i * step, x, 0));
    }
    return absl::OkStatus();
  }

 private:
  int64_t axis_ = 0;
};

[[maybe_unused]] const bool packs = RegisterMovement<Pack, ops::Pack>(
    std::tuple(), ops::Pack::values, ops::Pack::output);

}  // namespace
}  // namespace cpu_sim
