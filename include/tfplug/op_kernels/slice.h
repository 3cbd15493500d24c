// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SLICE_H_
#define TFPLUG_OP_KERNELS_SLICE_H_

#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/internal/host_backend.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/slice_spec.h"

#pragma GCC visibility push(hidden)

// Slices: views of the input that are copied.
namespace tfplug {
namespace op_kernels_internal {

class SliceKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Tensor begin_tensor, run.GetInput(1));
    TFPLUG_ASSIGN_OR_RETURN(const Tensor size_tensor, run.GetInput(2));
    if (begin_tensor.shape() != Shape{x.rank} ||
        size_tensor.shape() != Shape{x.rank}) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Expected begin and size arguments to be 1-D tensors of size ",
          x.rank, ", but got shapes ", begin_tensor.shape().ToString(), " and ",
          size_tensor.shape().ToString(), " instead."));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Ints begin, run.GetVector(1));
    TFPLUG_ASSIGN_OR_RETURN(const Ints size, run.GetVector(2));
    for (int d = 0; d < x.rank; ++d) {
      const int64_t first = begin[static_cast<size_t>(d)];
      int64_t count = size[static_cast<size_t>(d)];
      if (count == -1) count = x.dim(d) - first;
      if (first < 0 || count < 0 || first > x.dim(d) ||
          count > x.dim(d) - first) {
        return absl::InvalidArgumentError(absl::StrCat(
            (first < 0 || first > x.dim(d) ? "Expected begin["
                                           : "Expected size["),
            d, "] in [0, ",
            first < 0 || first > x.dim(d) ? x.dim(d) : x.dim(d) - first,
            "], but got ", first < 0 || first > x.dim(d) ? first : count));
      }
      x = ir::Range(x, d, first, first + count);
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    return Copy(run, x, y);
  }
};

class StridedSliceKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    return spec_.Init(construction);
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const SliceView slice, spec_.Apply(run, 1, x));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, slice.shape));
    return Copy(run, slice.view, Reshaped(y, slice.view));
  }

  // Returns a dense view with the dimensions of `like`, which has as many
  // elements.
  static Operand Reshaped(const Operand& view, const Operand& like) {
    return Operand::Dense(view.data, view.type, ir::DimsOf(like));
  }

 private:
  SliceSpec spec_;
};

// StridedSliceGrad: zeros, and the gradient in the place of the slice.
class StridedSliceGradKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    return spec_.Init(construction);
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Shape shape, GetShape(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand dy, GetView(run, 4));
    TFPLUG_ASSIGN_OR_RETURN(const Operand dx, run.AllocateOutput(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(const SliceView slice, spec_.Apply(run, 1, dx));
    if (slice.shape != ShapeOf(dy)) {
      return absl::InvalidArgumentError(
          "shape of dy was " + ShapeOf(dy).ToString() + " instead of " +
          slice.shape.ToString());
    }
    TFPLUG_RETURN_IF_ERROR(Fill(run, dx, 0));
    return Copy(run, StridedSliceKernel::Reshaped(dy, slice.view), slice.view);
  }

 private:
  SliceSpec spec_;
};

// TensorStridedSliceUpdate: a copy of a tensor in which a slice is replaced.
class StridedSliceUpdateKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    return spec_.Init(construction);
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    TFPLUG_RETURN_IF_ERROR(Copy(run, x, y));
    return Replace(run, y);
  }

 protected:
  // Replaces the slice of `y` by input 4.
  absl::Status Replace(OpRun& run, const Operand& y) const {
    TFPLUG_ASSIGN_OR_RETURN(const Operand value, GetView(run, 4));
    TFPLUG_ASSIGN_OR_RETURN(const SliceView slice, spec_.Apply(run, 1, y));
    if (slice.view.num_elements() == 0) return absl::OkStatus();
    if (!BroadcastsTo(value, slice.shape)) {
      return absl::InvalidArgumentError(
          "Cannot broadcast input shape " + ShapeOf(value).ToString() +
          " into the slice's shape " + slice.shape.ToString());
    }
    return Copy(run, ValuesOf(BroadcastTo(value, slice.shape), slice.view),
                slice.view);
  }

 private:
  // Returns whether a value of this shape fills a slice, as in NumPy: it may
  // also have further dimensions of size 1 in front.
  static bool BroadcastsTo(const Operand& value, const Shape& shape) {
    const int added = shape.rank() - value.rank;
    for (int d = 0; d < value.rank; ++d) {
      const int to = d + added;
      if (value.dim(d) == 1 || (to >= 0 && value.dim(d) == shape.dim(to))) {
        continue;
      }
      return false;
    }
    return true;
  }
  // Returns `values` with the dimensions of `like`, which differ in those of
  // size 1 only.
  static Operand ValuesOf(const Operand& values, const Operand& like) {
    Operand result = values;
    result.rank = 0;
    for (int d = 0, from = 0; d < like.rank; ++d) {
      if (like.dim(d) == 1) {
        result.AddDim(1, 0);
        continue;
      }
      while (values.dim(from) == 1) ++from;
      result.AddDim(like.dim(d), values.stride(from++));
    }
    return result;
  }

  SliceSpec spec_;
};

}  // namespace op_kernels_internal

inline void SliceOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  UseHostBackend();
  const uint64_t without_int32 = kCopiedTypes & ~kInt32Type;
  registrar.Add<SliceKernel>(
      KernelDef("Slice").HostMemory("begin").HostMemory("size"), "T",
      without_int32);
  const auto slice = [](const char* op) {
    return KernelDef(op).HostMemory("begin").HostMemory("end").HostMemory(
        "strides");
  };
  registrar.Add<StridedSliceKernel>(slice("StridedSlice"), "T", without_int32);
  registrar.Add<OnHost<StridedSliceKernel>>(
      slice("StridedSlice").HostMemory("input").HostMemory("output"), "T",
      kInt32Type);
  registrar.Add<StridedSliceGradKernel>(
      slice("StridedSliceGrad").HostMemory("shape"), "T", without_int32);
  registrar.Add<StridedSliceUpdateKernel>(slice("TensorStridedSliceUpdate"),
                                          "T", without_int32);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_SLICE_H_
