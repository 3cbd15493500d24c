// SPDX-License-Identifier: Apache-2.0
#include <tfplug/ops/array.h>

#include <cstdint>
#include <numeric>
#include <string>

#include "absl/algorithm/container.h"
#include "kernels/host_tensor.h"
#include "kernels/movement.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// Sets output `i`, of `shape`, to the part of `x` that starts at the element
// `first` and has these strides.
template <Place place>
absl::Status SetPart(tfplug::KernelContext& context, int i,
                     const tfplug::Shape& shape, const Dims& strides,
                     const tfplug::Tensor& x, int64_t first) {
  TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y, context.AllocateOutput(i, shape));
  TFPLUG_ASSIGN_OR_RETURN(
      const Loop<2> loop,
      (MakeLoop<2>(shape.dims(), {DenseStrides(shape.dims()), strides})));
  return Move<place>(context, loop, y, 0, x, first);
}

// Splits x along `axis` into parts of these sizes, whose sum is the size of
// that dimension.
template <Place place>
absl::Status SplitBySizes(tfplug::KernelContext& context,
                          const tfplug::Tensor& x, int axis,
                          const Dims& sizes) {
  tfplug::Shape shape = x.shape();
  const Dims strides = DenseStrides(shape.dims());
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    shape.set_dim(axis, sizes[i]);
    TFPLUG_RETURN_IF_ERROR(SetPart<place>(context, static_cast<int>(i), shape,
                                          strides, x, begin * strides[axis]));
    begin += sizes[i];
  }
  return absl::OkStatus();
}

template <Place place>
class Split final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor axis_tensor,
                            context.GetInput(ops::Split::split_dim));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x,
                            context.GetInput(ops::Split::value));
    TFPLUG_ASSIGN_OR_RETURN(const int axis, ReadAxis(axis_tensor, x.rank()));
    const int64_t parts = context.num_outputs();
    if (x.dim(axis) % parts != 0) {
      return absl::InvalidArgumentError(
          "dimension " + std::to_string(axis) + " of " + x.shape().ToString() +
          " is not a multiple of the number of outputs, " +
          std::to_string(parts));
    }
    return SplitBySizes<place>(
        context, x, axis,
        Dims(static_cast<size_t>(parts), x.dim(axis) / parts));
  }
};

template <Place place>
class SplitV final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x,
                            context.GetInput(ops::SplitV::value));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor sizes_tensor,
                            context.GetInput(ops::SplitV::size_splits));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor axis_tensor,
                            context.GetInput(ops::SplitV::split_dim));
    TFPLUG_ASSIGN_OR_RETURN(const int axis, ReadAxis(axis_tensor, x.rank()));
    TFPLUG_ASSIGN_OR_RETURN(Dims sizes, ReadDims(sizes_tensor));
    // One size may be -1, which stands for the rest.
    const int64_t size = x.dim(axis);
    const auto open = absl::c_find(sizes, -1);
    if (open != sizes.end()) {
      *open = 0;
      *open = size - std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    }
    const bool negative =
        absl::c_any_of(sizes, [](int64_t part) { return part < 0; });
    if (sizes.size() != static_cast<size_t>(context.num_outputs()) ||
        negative ||
        std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) != size) {
      return absl::InvalidArgumentError(
          "size_splits must have " + std::to_string(context.num_outputs()) +
          " sizes that add up to dimension " + std::to_string(axis) + " of " +
          x.shape().ToString() + ", not " + tfplug::Shape(sizes).ToString());
    }
    return SplitBySizes<place>(context, x, axis, sizes);
  }
};

// Splits a tensor into one output per index of a dimension, which is removed.
template <Place place>
class Unpack final : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(axis_, construction.GetAttr(ops::Unpack::axis));
    return absl::OkStatus();
  }

  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x,
                            context.GetInput(ops::Unpack::value));
    TFPLUG_ASSIGN_OR_RETURN(const int axis, CheckAxis(axis_, x.rank()));
    const int count = context.num_outputs();
    if (x.dim(axis) != count) {
      return absl::InvalidArgumentError(
          "dimension " + std::to_string(axis) + " of " + x.shape().ToString() +
          " is not " + std::to_string(count) + ", the number of outputs");
    }
    const tfplug::Shape x_shape = x.shape();
    tfplug::Shape shape;
    for (int d = 0; d < x_shape.rank(); ++d) {
      if (d != axis) shape.add_dim(x_shape.dim(d));
    }
    Dims strides = DenseStrides(x_shape.dims());
    const int64_t step = strides[axis];
    strides.erase(strides.begin() + axis);
    for (int i = 0; i < count; ++i) {
      TFPLUG_RETURN_IF_ERROR(
          SetPart<place>(context, i, shape, strides, x, i * step));
    }
    return absl::OkStatus();
  }

 private:
  int64_t axis_ = 0;
};

[[maybe_unused]] const bool kernels =
    RegisterMovement<Split, ops::Split>(std::tuple(ops::Split::split_dim),
                                        ops::Split::value,
                                        ops::Split::output) &&
    RegisterMovement<SplitV, ops::SplitV>(
        std::tuple(ops::SplitV::size_splits, ops::SplitV::split_dim),
        ops::SplitV::value, ops::SplitV::output) &&
    RegisterMovement<Unpack, ops::Unpack>(std::tuple(), ops::Unpack::value,
                                          ops::Unpack::output);

}  // namespace
}  // namespace cpu_sim
