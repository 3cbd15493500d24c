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

// What x[begin:end:stride, ...] takes of a tensor: elements from `first` on,
// with these strides.
struct Slice {
  Dims shape;
  Dims strides;
  int64_t first = 0;
};

// The attributes that StridedSlice and its kin have: in which places a bound is
// left out, an ellipsis or a new axis stands, or one index in a range's stead.
class SliceSpec {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction);

  // Of a dense tensor of `shape`. INVALID_ARGUMENT for what Python would not
  // take either.
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
