// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_WINDOW_H_
#define CPU_SIM_KERNELS_WINDOW_H_

#include <tfplug/base/shape.h>
#include <tfplug/kernel/kernel_construction.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/simd.h"

// Shapes of convolutions and pooling, computed on the host. Images are NHWC:
// [batch, rows, cols, channels].
namespace cpu_sim {

// The attributes of a convolution or pooling op.
class SlidingWindow {
 public:
  // Reads data_format, strides, padding and, if the op has them, ksize,
  // dilations and explicit_paddings. Returns UNIMPLEMENTED for NCHW.
  absl::Status Init(const tfplug::KernelConstruction& construction);

  // Returns the window of `size` taps over dimension `d` (1 or 2) of an image,
  // which has `in` elements.
  absl::StatusOr<Window> Over(int d, int64_t in, int64_t size) const;

  // Returns the pooling windows of ksize. INVALID_ARGUMENT unless `images` has
  // rank 4.
  absl::StatusOr<Pool2D> OverImages(const tfplug::Shape& images) const;

  // Returns the convolution of images [batch, rows, cols, depth] with a filter
  // [rows, cols, depth / groups, out_depth].
  absl::StatusOr<Conv2D> Convolve(const tfplug::Shape& images,
                                  const tfplug::Shape& filter) const;
  // Returns the depthwise convolution, with a filter [rows, cols, depth,
  // multiplier].
  absl::StatusOr<Conv2D> ConvolveDepthwise(const tfplug::Shape& images,
                                           const tfplug::Shape& filter) const;

 private:
  absl::StatusOr<Conv2D> Convolve(const tfplug::Shape& images,
                                  const tfplug::Shape& filter,
                                  int64_t out_depth, int64_t groups) const;

  std::vector<int64_t> strides_, dilations_, ksize_, explicit_paddings_;
  std::string padding_;
};

// Return the shape of the output.
tfplug::Shape OutputShape(const Conv2D& conv);
tfplug::Shape OutputShape(const Pool2D& pool);

// Returns the number of floats in the workspace of a full convolution.
int64_t WorkspaceOf(const Conv2D& conv);

// Returns INVALID_ARGUMENT unless `shape`, of the argument `name`, is `want`.
absl::Status CheckShape(const char* name, const tfplug::Shape& shape,
                        const tfplug::Shape& want);

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_WINDOW_H_
