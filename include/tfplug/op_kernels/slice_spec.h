// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SLICE_SPEC_H_
#define TFPLUG_OP_KERNELS_SLICE_SPEC_H_

#include <algorithm>
#include <string>

#include "tfplug/op_kernels/helpers.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// A slice of a tensor: the view of its elements, and the shape of the result,
// in which some dimensions are removed or new.
struct SliceView {
  Operand view;
  Shape shape;
};

// The slices of StridedSlice and its gradient, as in Python's indexing:
// a[begin:end:stride, ..., None, index].
class SliceSpec {
 public:
  absl::Status Init(KernelConstruction& construction) {
    const auto mask = [&](const char* attr) {
      return construction.GetAttr<int32_t>(attr);
    };
    TFPLUG_ASSIGN_OR_RETURN(begin_mask_, mask("begin_mask"));
    TFPLUG_ASSIGN_OR_RETURN(end_mask_, mask("end_mask"));
    TFPLUG_ASSIGN_OR_RETURN(ellipsis_mask_, mask("ellipsis_mask"));
    TFPLUG_ASSIGN_OR_RETURN(new_axis_mask_, mask("new_axis_mask"));
    TFPLUG_ASSIGN_OR_RETURN(shrink_axis_mask_, mask("shrink_axis_mask"));
    return absl::OkStatus();
  }

  // Returns the slice of `x`; begin, end and strides are the inputs from
  // `first` on.
  absl::StatusOr<SliceView> Apply(OpRun& run, int first,
                                  const Operand& x) const {
    Shape shapes[3];
    for (int i = 0; i < 3; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Tensor tensor, run.GetInput(first + i));
      shapes[i] = tensor.shape();
    }
    if (shapes[0].rank() != 1 || shapes[1] != shapes[0] ||
        shapes[2] != shapes[0] || shapes[0].dim(0) >= 32) {
      return absl::InvalidArgumentError(
          "Expected begin, end, and strides to be 1D equal size tensors, but "
          "got shapes " +
          shapes[0].ToString() + ", " + shapes[1].ToString() + ", and " +
          shapes[2].ToString() + " instead. They have up to 31 elements.");
    }
    TFPLUG_ASSIGN_OR_RETURN(const Ints begin, run.GetInts(first));
    TFPLUG_ASSIGN_OR_RETURN(const Ints end, run.GetInts(first + 1));
    TFPLUG_ASSIGN_OR_RETURN(const Ints strides, run.GetInts(first + 2));
    const size_t n = begin.size();
    int taken = 0;
    bool has_ellipsis = false;
    for (size_t i = 0; i < n; ++i) {
      if (Has(ellipsis_mask_, i)) {
        if (has_ellipsis) {
          return absl::InvalidArgumentError(
              "Multiple ellipses in slice spec not allowed");
        }
        has_ellipsis = true;
      } else if (!Has(new_axis_mask_, i)) {
        ++taken;
      }
    }
    if (taken > x.rank) {
      return absl::InvalidArgumentError(
          std::string(x.rank == 0 ? "Attempting to slice scalar input. " : "") +
          "Index out of range using input dim " + std::to_string(x.rank) +
          "; input has only " + std::to_string(x.rank) + " dims");
    }
    SliceView slice;
    slice.view = x;
    int d = 0;  // the next dimension
    const auto take_whole = [&](int dims) {
      for (; dims > 0; --dims) slice.shape.add_dim(x.dim(d++));
    };
    for (size_t i = 0; i < n; ++i) {
      if (Has(ellipsis_mask_, i)) {
        take_whole(x.rank - taken);
      } else if (Has(new_axis_mask_, i)) {
        slice.shape.add_dim(1);
      } else {
        TFPLUG_RETURN_IF_ERROR(
            Take(i, d++, begin[i], end[i], strides[i], slice));
      }
    }
    take_whole(x.rank - d);
    return slice;
  }

 private:
  static bool Has(int64_t mask, size_t bit) { return (mask >> bit & 1) != 0; }

  // Slices dimension `d` of the view.
  absl::Status Take(size_t i, int d, int64_t begin, int64_t end, int64_t stride,
                    SliceView& slice) const {
    Operand& view = slice.view;
    const int64_t size = view.dim(d);
    if (stride == 0) {
      return absl::InvalidArgumentError("strides[" + std::to_string(i) +
                                        "] must be non-zero");
    }
    if (Has(shrink_axis_mask_, i)) {
      const int64_t at = begin < 0 ? begin + size : begin;
      if (at < 0 || at >= size) {
        return absl::InvalidArgumentError(absl::StrCat(
            "slice index ", begin, " of dimension ", d, " out of bounds."));
      }
      if (stride < 0) {
        return absl::InvalidArgumentError(
            "only stride 1 allowed on non-range indexing.");
      }
      view = ir::Range(view, d, at, at + 1);
      return absl::OkStatus();
    }
    const int64_t low = stride > 0 ? 0 : -1;
    const int64_t high = stride > 0 ? size : size - 1;
    const auto bound = [&](int64_t at) {
      return std::clamp(at < 0 ? at + size : at, low, high);
    };
    const int64_t from =
        Has(begin_mask_, i) ? (stride > 0 ? low : high) : bound(begin);
    const int64_t to =
        Has(end_mask_, i) ? (stride > 0 ? high : low) : bound(end);
    const int64_t length = to - from;
    // Rounds up; the slice is empty if `end` is on the wrong side.
    const int64_t count =
        length != 0 && (length > 0) == (stride > 0)
            ? (length + stride - (stride > 0 ? 1 : -1)) / stride
            : 0;
    view.Advance(count == 0 ? 0 : from * view.stride(d));
    view.dim(d) = count;
    view.stride(d) *= stride;
    slice.shape.add_dim(count);
    return absl::OkStatus();
  }

  int64_t begin_mask_ = 0, end_mask_ = 0, ellipsis_mask_ = 0,
          new_axis_mask_ = 0, shrink_axis_mask_ = 0;
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_SLICE_SPEC_H_
