// SPDX-License-Identifier: Apache-2.0
#include <tfplug/ops/array.h>

#include <cstdint>
#include <string>

#include "kernels/host_tensor.h"
#include "kernels/movement.h"
#include "kernels/slice_spec.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

class SliceKernel : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    return spec_.Init(construction);
  }

 protected:
  // Reads the slice from the inputs `begin`, `begin` + 1 (end) and `begin` + 2
  // (strides).
  absl::StatusOr<Slice> GetSlice(tfplug::KernelContext& context, DimsView shape,
                                 int begin) const {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor from, context.GetInput(begin));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor to, context.GetInput(begin + 1));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor strides,
                            context.GetInput(begin + 2));
    return spec_.Apply(shape, from, to, strides);
  }

  // Writes `values` to a slice of `y`.
  template <Place place>
  static absl::Status SetSlice(tfplug::KernelContext& context,
                               const tfplug::Tensor& y, const Slice& slice,
                               const tfplug::Tensor& values) {
    if (values.shape() != tfplug::Shape(slice.shape)) {
      return absl::InvalidArgumentError(
          "the slice has shape " + tfplug::Shape(slice.shape).ToString() +
          ", but its values have shape " + values.shape().ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(
        const Loop<2> loop,
        (MakeLoop<2>(slice.shape, {slice.strides, DenseStrides(slice.shape)})));
    return Move<place>(context, loop, y, slice.first, values, 0);
  }

 private:
  SliceSpec spec_;
};

// x[begin:end:stride, ...], with Python's meaning.
template <Place place>
class StridedSlice final : public SliceKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x,
                            context.GetInput(ops::StridedSlice::input));
    const tfplug::Shape shape = x.shape();
    TFPLUG_ASSIGN_OR_RETURN(
        const Slice slice,
        GetSlice(context, shape.dims(), ops::StridedSlice::begin));
    TFPLUG_ASSIGN_OR_RETURN(
        const Loop<2> loop,
        (MakeLoop<2>(slice.shape, {DenseStrides(slice.shape), slice.strides})));
    return SetOutput<place>(context, tfplug::Shape(slice.shape), loop, x,
                            slice.first);
  }
};

// Writes a slice into zeros.
template <Place place>
class StridedSliceGrad final : public SliceKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor shape_tensor,
                            context.GetInput(ops::StridedSliceGrad::shape));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dy,
                            context.GetInput(ops::StridedSliceGrad::dy));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Shape shape, ReadShape(shape_tensor));
    TFPLUG_ASSIGN_OR_RETURN(
        const Slice slice,
        GetSlice(context, shape.dims(), ops::StridedSliceGrad::begin));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dx,
                            context.AllocateOutput(0, shape));
    TFPLUG_RETURN_IF_ERROR(Clear<place>(context, dx));
    return SetSlice<place>(context, dx, slice, dy);
  }
};

// Writes a slice into a copy of a tensor.
class TensorStridedSliceUpdate final : public SliceKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::TensorStridedSliceUpdate;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::input));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor value, context.GetInput(Op::value));
    const tfplug::Shape shape = x.shape();
    TFPLUG_ASSIGN_OR_RETURN(const Slice slice,
                            GetSlice(context, shape.dims(), Op::begin));
    const Dims whole = {x.num_elements()};
    TFPLUG_ASSIGN_OR_RETURN(const Loop<2> loop,
                            (MakeLoop<2>(whole, {Dims{1}, Dims{1}})));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y, context.AllocateOutput(0, shape));
    TFPLUG_RETURN_IF_ERROR(Move<Place::kDevice>(context, loop, y, 0, x, 0));
    return SetSlice<Place::kDevice>(context, y, slice, value);
  }
};

// Copies `size` elements per dimension from `begin` on; a size of -1 means the
// rest. TensorFlow has a kernel for int32 on every device.
class SliceOf final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x,
                            context.GetInput(ops::Slice::input));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor begin_tensor,
                            context.GetInput(ops::Slice::begin));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor size_tensor,
                            context.GetInput(ops::Slice::size));
    TFPLUG_ASSIGN_OR_RETURN(const Dims begin, ReadDims(begin_tensor));
    TFPLUG_ASSIGN_OR_RETURN(Dims size, ReadDims(size_tensor));
    const tfplug::Shape shape = x.shape();
    const Dims strides = DenseStrides(shape.dims());
    const auto rank = static_cast<size_t>(shape.rank());
    bool fits = begin.size() == rank && size.size() == rank;
    int64_t first = 0;
    for (size_t d = 0; fits && d < rank; ++d) {
      const int64_t all = shape.dim(static_cast<int>(d));
      fits = begin[d] >= 0 && begin[d] <= all;
      if (size[d] == -1) size[d] = all - begin[d];
      fits = fits && size[d] >= 0 && size[d] <= all - begin[d];
      first += begin[d] * strides[d];
    }
    if (!fits) {
      return absl::InvalidArgumentError(
          "a slice of size " + tfplug::Shape(size).ToString() + " at " +
          tfplug::Shape(begin).ToString() + " is not within " +
          shape.ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(const Loop<2> loop,
                            (MakeLoop<2>(size, {DenseStrides(size), strides})));
    return SetOutput<Place::kDevice>(context, tfplug::Shape(size), loop, x,
                                     first);
  }
};

[[maybe_unused]] const bool kernels =
    RegisterMovement<StridedSlice, ops::StridedSlice>(
        std::tuple(ops::StridedSlice::begin, ops::StridedSlice::end,
                   ops::StridedSlice::strides),
        ops::StridedSlice::input, ops::StridedSlice::output) &&
    RegisterMovement<StridedSliceGrad, ops::StridedSliceGrad>(
        std::tuple(ops::StridedSliceGrad::shape, ops::StridedSliceGrad::begin,
                   ops::StridedSliceGrad::end, ops::StridedSliceGrad::strides),
        ops::StridedSliceGrad::dy, ops::StridedSliceGrad::output);
TFPLUG_REGISTER_KERNEL(TensorStridedSliceUpdate,
                       MovedOnDevice<ops::TensorStridedSliceUpdate>(
                           ops::TensorStridedSliceUpdate::begin,
                           ops::TensorStridedSliceUpdate::end,
                           ops::TensorStridedSliceUpdate::strides));
TFPLUG_REGISTER_KERNEL(SliceOf, MovedOnDevice<ops::Slice>(ops::Slice::begin,
                                                          ops::Slice::size));

}  // namespace
}  // namespace cpu_sim
