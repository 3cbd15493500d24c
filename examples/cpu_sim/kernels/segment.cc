// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/math.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "kernels/combine.h"
#include "kernels/host_tensor.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// ---- On the device ---------------------------------------------------------

// The ways in which the rows of a segment are combined. Initial() is the value
// of an empty segment.
template <typename T>
struct SegmentSum : CombineAdd {
  static T Initial() { return T(0); }
};
template <typename T>
struct SegmentProd : CombineMul {
  static T Initial() { return T(1); }
};
template <typename T>
struct SegmentMax : CombineMax {
  static T Initial() { return std::numeric_limits<T>::lowest(); }
};
template <typename T>
struct SegmentMin : CombineMin {
  static T Initial() { return std::numeric_limits<T>::max(); }
};

template <typename Segment, typename T, typename Index>
void CombineSegments(T* y, int64_t y_size, const T* data, const Index* ids,
                     int64_t count, Coordinates segments, int64_t slice_size) {
  std::fill_n(y, y_size, Segment::Initial());
  ScatterSlices<Segment>(y, ids, data, count, segments, slice_size);
}

// ---- On the host -----------------------------------------------------------

// Combines the rows of `data` with equal `segment_ids`. A negative id drops the
// row.
template <typename Segment, typename T, typename Index>
class UnsortedSegment final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::UnsortedSegmentSum;  // the others have the same arguments
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor data, context.GetInput(Op::data));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor ids,
                            context.GetInput(Op::segment_ids));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor number_tensor,
                            context.GetInput(Op::num_segments));
    TFPLUG_ASSIGN_OR_RETURN(const Dims number, ReadDims(number_tensor));
    if (number.size() != 1 || number[0] < 0) {
      return absl::InvalidArgumentError(
          "num_segments must be a non-negative scalar, not " +
          tfplug::Shape(number).ToString());
    }
    tfplug::Shape shape = {number[0]};
    int64_t slice_size = 1;
    bool fits = ids.rank() <= data.rank();
    for (int d = 0; fits && d < data.rank(); ++d) {
      if (d < ids.rank()) {
        fits = ids.dim(d) == data.dim(d);
      } else {
        shape.add_dim(data.dim(d));
        slice_size *= data.dim(d);
      }
    }
    if (!fits) {
      return absl::InvalidArgumentError(
          "data.shape = " + data.shape().ToString() +
          " does not start with segment_ids.shape = " + ids.shape().ToString());
    }
    Coordinates segments;
    segments.rank = 1;
    segments.dims[0] = segments.size = number[0];
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y, context.AllocateOutput(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(&CombineSegments<Segment, T, Index>, y.flat<T>(),
                          y.num_elements(), data.flat<T>(), ids.flat<Index>(),
                          ids.num_elements(), segments, slice_size);
  }
};

template <class Op, typename Segment, typename T, typename... Index>
bool RegisterFor() {
  return (tfplug::RegisterKernel<UnsortedSegment<Segment, T, Index>>(
              Op().template T<T>().template Tindices<Index>().HostMemory(
                  Op::num_segments)) &&
          ...);
}

template <typename T>
bool Register() {
  return RegisterFor<ops::UnsortedSegmentSum, SegmentSum<T>, T, int32_t,
                     int64_t>() &&
         RegisterFor<ops::UnsortedSegmentProd, SegmentProd<T>, T, int32_t,
                     int64_t>() &&
         RegisterFor<ops::UnsortedSegmentMax, SegmentMax<T>, T, int32_t,
                     int64_t>() &&
         RegisterFor<ops::UnsortedSegmentMin, SegmentMin<T>, T, int32_t,
                     int64_t>();
}
[[maybe_unused]] const bool kernels = Register<float>() && Register<int64_t>();

}  // namespace
}  // namespace cpu_sim
