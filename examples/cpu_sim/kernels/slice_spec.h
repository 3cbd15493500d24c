// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_SLICE_SPEC_H_
#define CPU_SIM_KERNELS_SLICE_SPEC_H_

#include <tfplug/kernel/kernel_construction.h>
#include <tfplug/kernel/tensor.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/loop.h"

namespace cpu_sim {

// The elements that x[begin:end:stride, ...] selects: those from `first` on
// with these strides.
struct Slice {
  Dims shape;
  Dims strides;
  int64_t first = 0;
};

// The mask attributes of StridedSlice and related ops: the positions with an
// omitted bound, an ellipsis, a new axis, or an index instead of a range.
class SliceSpec {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction);

  // Returns the slice of a dense tensor of `shape`. INVALID_ARGUMENT for slices
  // that Python rejects too.
  absl::StatusOr<Slice> Apply(DimsView shape, const tfplug::Tensor& begin,
                              const tfplug::Tensor& end,
                              const tfplug::Tensor& strides) const;

 private:
  int64_t begin_mask_ = 0;
  int64_t end_mask_ = 0;
  int64_t ellipsis_mask_ = 0;
  int64_t new_axis_mask_ = 0;
  int64_t shrink_axis_mask_ = 0;
};

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_SLICE_SPEC_H_
