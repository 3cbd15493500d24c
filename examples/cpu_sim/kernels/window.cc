// SPDX-License-Identifier: Apache-2.0
#include "kernels/window.h"

#include <tfplug/base/status_macros.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace cpu_sim {
namespace {

// Validates a list with an element for each dimension of NHWC, which must be 1
// for batch and channels.
absl::Status CheckPerDimension(const char* name,
                               const std::vector<int64_t>& list) {
  if (list.size() != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " must specify 4 dimensions, not ", list.size()));
  }
  if (list[0] != 1 || list[3] != 1) {
    return absl::UnimplementedError(
        absl::StrCat(name, " in the batch and depth dimensions must be 1, not ",
                     list[0], " and ", list[3]));
  }
  if (list[1] < 1 || list[2] < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " must be positive, not ", list[1], " and ", list[2]));
  }
  return absl::OkStatus();
}

absl::Status CheckRank4(const char* name, const tfplug::Shape& shape) {
  if (shape.rank() == 4) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must be 4-dimensional, not ", shape.ToString()));
}

constexpr int64_t kTileFloats = 1 << 17;
constexpr int64_t kMinTile = 256;

// Returns the number of input elements per output pixel of one group.
int64_t PatchSize(const Conv2D& conv) {
  return conv.rows.size * conv.cols.size * (conv.in_depth / conv.groups);
}

}  // namespace

absl::Status SlidingWindow::Init(
    const tfplug::KernelConstruction& construction) {
  using List = std::vector<int64_t>;
  std::string format = "NHWC";
  if (construction.HasAttr("data_format")) {
    TFPLUG_ASSIGN_OR_RETURN(format,
                            construction.GetAttr<std::string>("data_format"));
  }
  if (format != "NHWC") {
    return absl::UnimplementedError(
        absl::StrCat("data_format ", format,
                     " is not implemented on this device; use NHWC "
                     "(channels_last)"));
  }
  TFPLUG_ASSIGN_OR_RETURN(strides_, construction.GetAttr<List>("strides"));
  TFPLUG_RETURN_IF_ERROR(CheckPerDimension("strides", strides_));
  TFPLUG_ASSIGN_OR_RETURN(padding_,
                          construction.GetAttr<std::string>("padding"));
  dilations_ = ksize_ = {1, 1, 1, 1};
  if (construction.HasAttr("dilations")) {
    TFPLUG_ASSIGN_OR_RETURN(dilations_,
                            construction.GetAttr<List>("dilations"));
    TFPLUG_RETURN_IF_ERROR(CheckPerDimension("dilations", dilations_));
  }
  if (construction.HasAttr("ksize")) {
    TFPLUG_ASSIGN_OR_RETURN(ksize_, construction.GetAttr<List>("ksize"));
    TFPLUG_RETURN_IF_ERROR(CheckPerDimension("ksize", ksize_));
  }
  if (padding_ != "EXPLICIT") return absl::OkStatus();
  TFPLUG_ASSIGN_OR_RETURN(explicit_paddings_,
                          construction.GetAttr<List>("explicit_paddings"));
  const List& pads = explicit_paddings_;
  if (pads.size() != 8 || *std::min_element(pads.begin(), pads.end()) < 0 ||
      pads[0] != 0 || pads[1] != 0 || pads[6] != 0 || pads[7] != 0) {
    return absl::InvalidArgumentError(
        "explicit_paddings must have 8 non-negative elements, which are 0 for "
        "the batch and depth dimensions");
  }
  return absl::OkStatus();
}

absl::StatusOr<Window> SlidingWindow::Over(int d, int64_t in,
                                           int64_t size) const {
  Window window{in, 0, size, strides_[d], dilations_[d], 0};
  // The distance from the first tap to the last, inclusive.
  const int64_t reach = (size - 1) * window.dilation + 1;
  if (padding_ == "SAME") {
    window.out = (in + window.stride - 1) / window.stride;
    const int64_t lacking = (window.out - 1) * window.stride + reach - in;
    window.pad = std::max<int64_t>(lacking, 0) / 2;
    return window;
  }
  int64_t padded = in;
  if (padding_ == "EXPLICIT") {
    window.pad = explicit_paddings_[2 * d];
    padded += window.pad + explicit_paddings_[2 * d + 1];
  }
  // Checked before the division, which rounds towards 0.
  if (padded - reach + window.stride < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Computed output size would be negative: a window of ", reach,
        " with stride ", window.stride, " over ", padded, " elements"));
  }
  window.out = (padded - reach + window.stride) / window.stride;
  return window;
}

absl::StatusOr<Pool2D> SlidingWindow::OverImages(
    const tfplug::Shape& images) const {
  TFPLUG_RETURN_IF_ERROR(CheckRank4("tensor_in", images));
  Pool2D pool{};
  pool.batch = images.dim(0);
  pool.depth = images.dim(3);
  TFPLUG_ASSIGN_OR_RETURN(pool.rows, Over(1, images.dim(1), ksize_[1]));
  TFPLUG_ASSIGN_OR_RETURN(pool.cols, Over(2, images.dim(2), ksize_[2]));
  return pool;
}

absl::StatusOr<Conv2D> SlidingWindow::Convolve(const tfplug::Shape& images,
                                               const tfplug::Shape& filter,
                                               int64_t out_depth,
                                               int64_t groups) const {
  Conv2D conv{};
  conv.batch = images.dim(0);
  conv.in_depth = images.dim(3);
  conv.out_depth = out_depth;
  conv.groups = groups;
  TFPLUG_ASSIGN_OR_RETURN(conv.rows, Over(1, images.dim(1), filter.dim(0)));
  TFPLUG_ASSIGN_OR_RETURN(conv.cols, Over(2, images.dim(2), filter.dim(1)));
  // A tile has as many patches as fit into a cache, and enough to amortize
  // loading the filter.
  const int64_t pixels = conv.batch * conv.rows.out * conv.cols.out;
  const int64_t patch = std::max<int64_t>(PatchSize(conv), 1);
  conv.tile = std::min(pixels, std::max(kMinTile, kTileFloats / patch));
  return conv;
}

absl::StatusOr<Conv2D> SlidingWindow::Convolve(
    const tfplug::Shape& images, const tfplug::Shape& filter) const {
  TFPLUG_RETURN_IF_ERROR(CheckRank4("input", images));
  TFPLUG_RETURN_IF_ERROR(CheckRank4("filter", filter));
  const int64_t depth = images.dim(3), of_filter = filter.dim(2);
  if (of_filter < 1 || depth % of_filter != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input depth must be evenly divisible by filter depth: ", depth, " vs ",
        of_filter));
  }
  const int64_t groups = depth / of_filter;
  if (groups > 1 && filter.dim(3) % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "output depth must be evenly divisible by number of groups: ",
        filter.dim(3), " vs ", groups));
  }
  return Convolve(images, filter, filter.dim(3), groups);
}

absl::StatusOr<Conv2D> SlidingWindow::ConvolveDepthwise(
    const tfplug::Shape& images, const tfplug::Shape& filter) const {
  TFPLUG_RETURN_IF_ERROR(CheckRank4("input", images));
  TFPLUG_RETURN_IF_ERROR(CheckRank4("filter", filter));
  const int64_t depth = images.dim(3);
  if (filter.dim(2) != depth) {
    return absl::InvalidArgumentError(
        absl::StrCat("input and filter must have the same depth: ", depth,
                     " vs ", filter.dim(2)));
  }
  return Convolve(images, filter, depth * filter.dim(3), depth);
}

tfplug::Shape OutputShape(const Conv2D& conv) {
  return {conv.batch, conv.rows.out, conv.cols.out, conv.out_depth};
}

tfplug::Shape OutputShape(const Pool2D& pool) {
  return {pool.batch, pool.rows.out, pool.cols.out, pool.depth};
}

int64_t WorkspaceOf(const Conv2D& conv) { return conv.tile * PatchSize(conv); }

absl::Status CheckShape(const char* name, const tfplug::Shape& shape,
                        const tfplug::Shape& want) {
  if (shape == want) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      name, " must have shape ", want.ToString(), ", not ", shape.ToString()));
}

}  // namespace cpu_sim
