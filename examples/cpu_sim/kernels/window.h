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

// The host's part of what slides over an image: convolutions and pooling.
// Images are NHWC: [batch, rows, cols, channels].
namespace cpu_sim {

// The attributes of the op, and what follows from them for an image.
class SlidingWindow {
 public:
  // Reads data_format, strides, padding and, where the op has them, ksize,
  // dilations and explicit_paddings. UNIMPLEMENTED for NCHW.
  absl::Status Init(const tfplug::KernelConstruction& construction);

  // With `size` taps over dimension `d` of an image, 1 or 2, of `in` elements.
  absl::StatusOr<Window> Over(int d, int64_t in, int64_t size) const;

  // Pooling: the windows of ksize over an image. INVALID_ARGUMENT unless it is
  // a batch of images.
  absl::StatusOr<Pool2D> OverImages(const tfplug::Shape& images) const;

  // A convolution of images [batch, rows, cols, depth] with a filter [rows,
  // cols, depth / groups, out_depth].
  absl::StatusOr<Conv2D> Convolve(const tfplug::Shape& images,
                                  const tfplug::Shape& filter) const;
  // Each channel by itself, filter [rows, cols, depth, multiplier].
  absl::StatusOr<Conv2D> ConvolveDepthwise(const tfplug::Shape& images,
                                           const tfplug::Shape& filter) const;

 private:
  absl::StatusOr<Conv2D> Convolve(const tfplug::Shape& images,
                                  const tfplug::Shape& filter,
                                  int64_t out_depth, int64_t groups) const;

  std::vector<int64_t> strides_, dilations_, ksize_, explicit_paddings_;
  std::string padding_;
};

// What comes out.
tfplug::Shape OutputShape(const Conv2D& conv);
tfplug::Shape OutputShape(const Pool2D& pool);

// How many floats the functions that convolve work in.
int64_t WorkspaceOf(const Conv2D& conv);

// INVALID_ARGUMENT unless `shape`, that of the argument `name`, is `want`.
absl::Status CheckShape(const char* name, const tfplug::Shape& shape,
                        const tfplug::Shape& want);

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_WINDOW_H_
