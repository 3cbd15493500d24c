// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/narrow_types.h>
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/array.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/host_tensor.h"
#include "kernels/movement.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// Where the tensors to join and the dimension are: Concat and ConcatV2 differ.
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
            "input " + std::to_string(i) + " is " + x.shape().ToString() +
            ", and the ones before are " + shape.ToString() +
            " but for dimension " + std::to_string(axis) +
            "; they cannot be joined");
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

using ConcatOnDevice = Concat<ops::Concat, Place::kDevice>;
using ConcatOnHost = Concat<ops::Concat, Place::kHost>;
using ConcatV2OnDevice = Concat<ops::ConcatV2, Place::kDevice>;
TFPLUG_REGISTER_KERNEL(
    ConcatOnDevice,
    ops::Concat()
        .T<float, double, tfplug::Half, tfplug::BFloat16, int64_t, bool>()
        .HostMemory(ops::Concat::concat_dim));
TFPLUG_REGISTER_KERNEL(ConcatOnHost, ops::Concat()
                                         .T<int32_t>()
                                         .HostMemory(ops::Concat::concat_dim)
                                         .HostMemory(ops::Concat::values)
                                         .HostMemory(ops::Concat::output));
// ConcatV2 of int32 is left to core, which has it for every device.
TFPLUG_REGISTER_KERNEL(
    ConcatV2OnDevice,
    ops::ConcatV2()
        .T<float, double, tfplug::Half, tfplug::BFloat16, int64_t, bool>()
        .HostMemory(ops::ConcatV2::axis));

// Tensors of one shape, along a new dimension.
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
            "want tensors of one shape; input 0 is " + x_shape.ToString() +
            ", input " + std::to_string(i) + " " + x.shape().ToString());
      }
      TFPLUG_RETURN_IF_ERROR(Move<place>(context, loop, y, i * step, x, 0));
    }
    return absl::OkStatus();
  }

 private:
  int64_t axis_ = 0;
};

TFPLUG_REGISTER_KERNEL(
    Pack<Place::kDevice>,
    ops::Pack()
        .T<float, double, tfplug::Half, tfplug::BFloat16, int64_t, bool>());
TFPLUG_REGISTER_KERNEL(Pack<Place::kHost>, ops::Pack()
                                               .T<int32_t>()
                                               .HostMemory(ops::Pack::values)
                                               .HostMemory(ops::Pack::output));

}  // namespace
}  // namespace cpu_sim
