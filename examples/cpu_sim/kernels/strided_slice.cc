// SPDX-License-Identifier: Apache-2.0
#include <tfplug/register_kernel.h>
#include <tfplug/status_macros.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/host_tensor.h"
#include "kernels/movement.h"

namespace cpu_sim {
namespace {

// x[begin:end:stride, ...], as Python means it.
template <Place place>
class StridedSlice final : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
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

  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.input(0));
    Dims spec[3];  // begin, end, stride
    for (int i = 0; i < 3; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor tensor, context.input(i + 1));
      TFPLUG_ASSIGN_OR_RETURN(spec[i], ReadDims(tensor));
    }
    const auto& [begin, end, stride] = spec;
    if (end.size() != begin.size() || stride.size() != begin.size() ||
        begin.size() >= 32) {
      return absl::InvalidArgumentError(
          "begin, end and strides must have one length, below 32");
    }
    const int count = static_cast<int>(begin.size());

    // How many dimensions the ellipsis stands for; without one it is at the
    // end.
    int taken = 0;
    bool ellipsis = false;
    for (int i = 0; i < count; ++i) {
      const bool here = Has(ellipsis_mask_, i);
      ellipsis |= here;
      if (!here && !Has(new_axis_mask_, i)) ++taken;
    }
    if (taken > x.rank()) {
      return absl::InvalidArgumentError("a slice of " + std::to_string(taken) +
                                        " dimensions of " +
                                        x.shape().ToString());
    }

    Slice slice(x.shape());
    for (int i = 0; i < count; ++i) {
      if (Has(ellipsis_mask_, i)) {
        slice.TakeWhole(x.rank() - taken);
      } else if (Has(new_axis_mask_, i)) {
        slice.AddAxis();
      } else if (stride[i] == 0) {
        return absl::InvalidArgumentError("strides[" + std::to_string(i) +
                                          "] must be non-zero");
      } else if (Has(shrink_axis_mask_, i)) {
        TFPLUG_RETURN_IF_ERROR(slice.TakeOne(begin[i]));
      } else {
        slice.TakeRange(Has(begin_mask_, i) ? nullptr : &begin[i],
                        Has(end_mask_, i) ? nullptr : &end[i], stride[i]);
      }
    }
    if (!ellipsis) slice.TakeWhole(x.rank() - taken);

    TFPLUG_ASSIGN_OR_RETURN(
        const Loop<2> loop,
        (MakeLoop<2>(slice.shape, {DenseStrides(slice.shape), slice.strides})));
    return SetOutput<place>(context, tfplug::Shape(slice.shape), loop, x,
                            slice.first);
  }

 private:
  // What is taken of a tensor, dimension by dimension.
  struct Slice {
    explicit Slice(const tfplug::Shape& x)
        : sizes(x.dims().begin(), x.dims().end()),
          x_strides(DenseStrides(x.dims())) {}

    void AddAxis() { Add(1, 0); }

    void TakeWhole(int dims) {
      for (; dims > 0; --dims, ++next) Add(sizes[next], x_strides[next]);
    }

    absl::Status TakeOne(int64_t at) {
      const int64_t size = sizes[next];
      if (at < -size || at >= size) {
        return absl::InvalidArgumentError(
            "slice index " + std::to_string(at) + " of dimension " +
            std::to_string(next) + " out of bounds.");
      }
      first += (at < 0 ? at + size : at) * x_strides[next++];
      return absl::OkStatus();
    }

    // Null: from, or to, the end that the stride begins at, or goes to.
    void TakeRange(const int64_t* from, const int64_t* to, int64_t stride) {
      const int64_t size = sizes[next];
      const int64_t low = stride > 0 ? 0 : -1;
      const int64_t high = stride > 0 ? size : size - 1;
      const auto bound = [&](const int64_t* at, int64_t otherwise) {
        if (at == nullptr) return otherwise;
        return std::clamp(*at < 0 ? *at + size : *at, low, high);
      };
      const int64_t begin = bound(from, stride > 0 ? low : high);
      const int64_t length = bound(to, stride > 0 ? high : low) - begin;
      // Rounded up; nothing when the end lies on the wrong side.
      const int64_t count =
          (length > 0) == (stride > 0)
              ? (length + stride - (stride > 0 ? 1 : -1)) / stride
              : 0;
      first += begin * x_strides[next];
      Add(count, stride * x_strides[next]);
      ++next;
    }

    void Add(int64_t size, int64_t stride) {
      shape.push_back(size);
      strides.push_back(stride);
    }

    const Dims sizes, x_strides;
    size_t next = 0;  // the dimension of x to take of
    Dims shape, strides;
    int64_t first = 0;
  };

  static bool Has(int64_t mask, int bit) { return (mask >> bit & 1) != 0; }

  int64_t begin_mask_ = 0;
  int64_t end_mask_ = 0;
  int64_t ellipsis_mask_ = 0;
  int64_t new_axis_mask_ = 0;
  int64_t shrink_axis_mask_ = 0;
};

TFPLUG_REGISTER_KERNEL(StridedSlice<Place::kDevice>,
                       tfplug::KernelDef("StridedSlice")
                           .TypeConstraint<float, double, int64_t, bool>("T")
                           .HostMemory("begin")
                           .HostMemory("end")
                           .HostMemory("strides"));
TFPLUG_REGISTER_KERNEL(StridedSlice<Place::kHost>,
                       tfplug::KernelDef("StridedSlice")
                           .TypeConstraint<int32_t>("T")
                           .HostMemory("input")
                           .HostMemory("begin")
                           .HostMemory("end")
                           .HostMemory("strides")
                           .HostMemory("output"));

}  // namespace
}  // namespace cpu_sim
