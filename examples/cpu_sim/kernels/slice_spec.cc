// SPDX-License-Identifier: Apache-2.0
#include "kernels/slice_spec.h"

#include <tfplug/base/status_macros.h>

#include <algorithm>
#include <string>

#include "kernels/host_tensor.h"

namespace cpu_sim {
namespace {

bool Has(int64_t mask, int bit) { return (mask >> bit & 1) != 0; }

// Builds a slice of a tensor, dimension by dimension.
class Slicer {
 public:
  explicit Slicer(DimsView x)
      : sizes_(x.begin(), x.end()), x_strides_(DenseStrides(x)) {}

  void AddAxis() { Add(1, 0); }

  void TakeWhole(int dims) {
    for (; dims > 0; --dims, ++next_) Add(sizes_[next_], x_strides_[next_]);
  }

  absl::Status TakeOne(int64_t at) {
    const int64_t size = sizes_[next_];
    if (at < -size || at >= size) {
      return absl::InvalidArgumentError(
          "slice index " + std::to_string(at) + " of dimension " +
          std::to_string(next_) + " out of bounds.");
    }
    slice_.first += (at < 0 ? at + size : at) * x_strides_[next_++];
    return absl::OkStatus();
  }

  // A null bound extends the range to the end of the dimension: to the first
  // element in the direction of the stride (`from`) or to the last (`to`).
  void TakeRange(const int64_t* from, const int64_t* to, int64_t stride) {
    const int64_t size = sizes_[next_];
    const int64_t low = stride > 0 ? 0 : -1;
    const int64_t high = stride > 0 ? size : size - 1;
    const auto bound = [&](const int64_t* at, int64_t otherwise) {
      if (at == nullptr) return otherwise;
      return std::clamp(*at < 0 ? *at + size : *at, low, high);
    };
    const int64_t begin = bound(from, stride > 0 ? low : high);
    const int64_t length = bound(to, stride > 0 ? high : low) - begin;
    // Rounds up; the slice is empty if `end` is on the wrong side.
    const int64_t count =
        (length > 0) == (stride > 0)
            ? (length + stride - (stride > 0 ? 1 : -1)) / stride
            : 0;
    slice_.first += begin * x_strides_[next_];
    Add(count, stride * x_strides_[next_]);
    ++next_;
  }

  Slice Result() && { return std::move(slice_); }

 private:
  void Add(int64_t size, int64_t stride) {
    slice_.shape.push_back(size);
    slice_.strides.push_back(stride);
  }

  const Dims sizes_, x_strides_;
  size_t next_ = 0;  // next dimension of x
  Slice slice_;
};

}  // namespace

absl::Status SliceSpec::Init(tfplug::KernelConstruction& construction) {
  const auto mask = [&](const char* attr) {
    return construction.GetAttr<int64_t>(attr);
  };
  TFPLUG_ASSIGN_OR_RETURN(begin_mask_, mask("begin_mask"));
  TFPLUG_ASSIGN_OR_RETURN(end_mask_, mask("end_mask"));
  TFPLUG_ASSIGN_OR_RETURN(ellipsis_mask_, mask("ellipsis_mask"));
  TFPLUG_ASSIGN_OR_RETURN(new_axis_mask_, mask("new_axis_mask"));
  TFPLUG_ASSIGN_OR_RETURN(shrink_axis_mask_, mask("shrink_axis_mask"));
  return absl::OkStatus();
}

absl::StatusOr<Slice> SliceSpec::Apply(DimsView shape,
                                       const tfplug::Tensor& begin_tensor,
                                       const tfplug::Tensor& end_tensor,
                                       const tfplug::Tensor& strides) const {
  TFPLUG_ASSIGN_OR_RETURN(const Dims begin, ReadDims(begin_tensor));
  TFPLUG_ASSIGN_OR_RETURN(const Dims end, ReadDims(end_tensor));
  TFPLUG_ASSIGN_OR_RETURN(const Dims stride, ReadDims(strides));
  if (end.size() != begin.size() || stride.size() != begin.size() ||
      begin.size() >= 32) {
    return absl::InvalidArgumentError(
        "begin, end and strides must have the same length, below 32");
  }
  const int count = static_cast<int>(begin.size());
  const int rank = static_cast<int>(shape.size());

  // The number of dimensions outside the ellipsis. Without an ellipsis in the
  // spec, there is one at the end.
  int taken = 0;
  bool ellipsis = false;
  for (int i = 0; i < count; ++i) {
    const bool here = Has(ellipsis_mask_, i);
    ellipsis |= here;
    if (!here && !Has(new_axis_mask_, i)) ++taken;
  }
  if (taken > rank) {
    return absl::InvalidArgumentError("cannot slice " + std::to_string(taken) +
                                      " dimensions of " +
                                      tfplug::Shape(shape).ToString());
  }

  Slicer slicer(shape);
  for (int i = 0; i < count; ++i) {
    if (Has(ellipsis_mask_, i)) {
      slicer.TakeWhole(rank - taken);
    } else if (Has(new_axis_mask_, i)) {
      slicer.AddAxis();
    } else if (stride[i] == 0) {
      return absl::InvalidArgumentError("strides[" + std::to_string(i) +
                                        "] must be non-zero");
    } else if (Has(shrink_axis_mask_, i)) {
      TFPLUG_RETURN_IF_ERROR(slicer.TakeOne(begin[i]));
    } else {
      slicer.TakeRange(Has(begin_mask_, i) ? nullptr : &begin[i],
                       Has(end_mask_, i) ? nullptr : &end[i], stride[i]);
    }
  }
  if (!ellipsis) slicer.TakeWhole(rank - taken);
  return std::move(slicer).Result();
}

}  // namespace cpu_sim
