// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_WINDOW_H_
#define TFPLUG_BACKEND_OPS_WINDOW_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tfplug/backend/ops/helpers.h"
#include "tfplug/backend/ops/matmul.h"

#pragma GCC visibility push(hidden)

// Windows that slide over images: the geometry of convolutions and pooling. An
// image is a view [batch, spatial..., channels], whatever its layout is in
// memory, and its windows are a view [batch, output..., window..., channels]
// that overlaps itself. A gradient with respect to the image is again a sum
// over windows, of the spread gradient: zeros between and around its elements.
namespace tfplug::internal {

// One spatial dimension.
struct WindowDim {
  int64_t input, output;
  int64_t size;  // of the window
  int64_t stride, dilation;
  int64_t before, after;  // padding
};
using WindowDims = absl::InlinedVector<WindowDim, 3>;

// Returns a view with the channels last.
inline Operand ChannelsLast(const Operand& view, bool channels_first) {
  return channels_first ? WithDimLast(view, 1) : view;
}
// Returns the shape of an image with this batch, channels and output size.
inline Shape ImageShape(int64_t batch, const WindowDims& dims, int64_t channels,
                        bool channels_first) {
  Shape shape = {batch};
  if (channels_first) shape.add_dim(channels);
  for (const WindowDim& dim : dims) shape.add_dim(dim.output);
  if (!channels_first) shape.add_dim(channels);
  return shape;
}

// The attributes strides, padding, explicit_paddings, dilations, data_format
// and ksize of an op with `spatial` dimensions.
class WindowAttrs {
 public:
  absl::Status Init(KernelConstruction& construction, int spatial) {
    spatial_ = spatial;
    TFPLUG_ASSIGN_OR_RETURN(channels_first_, HasChannelsFirst(construction));
    TFPLUG_ASSIGN_OR_RETURN(padding_,
                            construction.GetAttr<std::string>("padding"));
    for (auto [name, list] : {std::make_pair("strides", &strides_),
                              std::make_pair("dilations", &dilations_),
                              std::make_pair("ksize", &sizes_)}) {
      if (!construction.HasAttr(name)) continue;
      TFPLUG_ASSIGN_OR_RETURN(*list,
                              construction.GetAttr<std::vector<int64_t>>(name));
      const size_t rank = static_cast<size_t>(spatial) + 2;
      bool is_valid = list->size() == rank;
      for (int64_t value : *list) is_valid = is_valid && value > 0;
      if (!is_valid) {
        return absl::InvalidArgumentError(std::string(name) + " must specify " +
                                          std::to_string(rank) +
                                          " positive dimensions");
      }
      if ((*list)[0] != 1 || (*list)[Position(spatial)] != 1) {
        return absl::UnimplementedError(
            std::string(name) + " in the batch and depth dimensions must be 1");
      }
    }
    if (construction.HasAttr("explicit_paddings") && padding_ == "EXPLICIT") {
      TFPLUG_ASSIGN_OR_RETURN(
          paddings_,
          construction.GetAttr<std::vector<int64_t>>("explicit_paddings"));
      if (paddings_.size() != 2 * (static_cast<size_t>(spatial) + 2)) {
        return absl::InvalidArgumentError(
            "explicit_paddings needs two values for each dimension");
      }
    }
    return absl::OkStatus();
  }

  bool channels_first() const { return channels_first_; }
  int spatial() const { return spatial_; }
  int64_t window_size(int i) const { return sizes_[Position(i)]; }

  // Returns the geometry for an image and a window of these sizes.
  template <class SizeOfWindow>
  absl::StatusOr<WindowDims> Dims(const Operand& image,
                                  SizeOfWindow size) const {
    WindowDims dims;
    for (int i = 0; i < spatial_; ++i) {
      WindowDim dim = {
          image.dim(i + 1), 0, size(i), strides_[Position(i)], 1, 0, 0};
      if (!dilations_.empty()) dim.dilation = dilations_[Position(i)];
      const int64_t extent = (dim.size - 1) * dim.dilation + 1;
      if (padding_ == "SAME") {
        dim.output = (dim.input + dim.stride - 1) / dim.stride;
        const int64_t padding = std::max<int64_t>(
            0, (dim.output - 1) * dim.stride + extent - dim.input);
        dim.before = padding / 2;
        dim.after = padding - dim.before;
      } else {
        if (padding_ == "EXPLICIT") {
          dim.before = paddings_[2 * Position(i)];
          dim.after = paddings_[2 * Position(i) + 1];
        }
        dim.output =
            (dim.input + dim.before + dim.after - extent + dim.stride) /
            dim.stride;
      }
      if (dim.output < 0 || dim.size <= 0) {
        return absl::InvalidArgumentError(
            "Computed output size would be negative: " +
            std::to_string(dim.output) +
            " [input_size: " + std::to_string(dim.input) +
            ", effective_filter_size: " + std::to_string(extent) +
            ", stride: " + std::to_string(dim.stride) + "]");
      }
      dims.push_back(dim);
    }
    return dims;
  }

 private:
  // Returns the index of a spatial dimension, or for `spatial` of the channels,
  // in a list with an element for each dimension of the image.
  size_t Position(int i) const {
    const auto k = static_cast<size_t>(i);
    if (i == spatial_) return channels_first_ ? 1 : k + 1;
    return channels_first_ ? k + 2 : k + 1;
  }

  int spatial_ = 2;
  bool channels_first_ = false;
  std::string padding_;
  std::vector<int64_t> strides_, dilations_, sizes_, paddings_;
};

// Copies an image into a larger one that is filled with `value`. Element 0 of
// each spatial dimension goes to `first`, the next ones follow at `step`;
// elements outside are dropped.
struct Placement {
  int64_t size, first, step;
};
inline absl::StatusOr<Operand> Place(OpRun& run, Operand image,
                                     absl::Span<const Placement> dims,
                                     double value) {
  Ints sizes = {image.dim(0)};
  for (const Placement& dim : dims) sizes.push_back(dim.size);
  sizes.push_back(image.dim(image.rank - 1));
  TFPLUG_ASSIGN_OR_RETURN(const Operand result,
                          run.launcher().Allocate(image.type, sizes));
  TFPLUG_RETURN_IF_ERROR(Fill(run, result, value));
  Operand inside = result;
  for (int d = 1; d + 1 < image.rank; ++d) {
    const Placement& dim = dims[static_cast<size_t>(d) - 1];
    // The elements [begin, end) are inside.
    const int64_t begin =
        dim.first < 0 ? (-dim.first + dim.step - 1) / dim.step : 0;
    const int64_t room = dim.size - dim.first;
    const int64_t end =
        std::clamp<int64_t>(room <= 0 ? 0 : (room + dim.step - 1) / dim.step,
                            begin, std::max(begin, image.dim(d)));
    image =
        Range(image, d, begin, std::min(end, std::max(begin, image.dim(d))));
    inside.Advance((dim.first + begin * dim.step) * result.stride(d));
    inside.dim(d) = image.dim(d);
    inside.stride(d) = dim.step * result.stride(d);
  }
  TFPLUG_RETURN_IF_ERROR(Copy(run, image, inside));
  return result;
}

// Returns the image with its padding, or the image itself if there is none.
inline absl::StatusOr<Operand> Padded(OpRun& run, const Operand& image,
                                      const WindowDims& dims, double value) {
  absl::InlinedVector<Placement, 3> placements;
  bool is_padded = false;
  for (const WindowDim& dim : dims) {
    is_padded = is_padded || dim.before > 0 || dim.after > 0;
    placements.push_back({dim.input + dim.before + dim.after, dim.before, 1});
  }
  if (!is_padded) return image;
  return Place(run, image, placements, value);
}

// Returns the windows of a padded image: [batch, output..., window...,
// channels].
inline Operand Windows(const Operand& image, const WindowDims& dims) {
  Operand view = image;
  view.rank = 1;
  int d = 1;
  for (const WindowDim& dim : dims) {
    view.AddDim(dim.output, image.stride(d++) * dim.stride);
  }
  d = 1;
  for (const WindowDim& dim : dims) {
    view.AddDim(dim.size, image.stride(d++) * dim.dilation);
  }
  return view.AddDim(image.dim(d), image.stride(d));
}

// Spreads the gradient `dy` of the windows so that the windows of the result,
// [batch, input..., window..., channels], are the elements that each element of
// the image contributed to; window element k is that of the reversed window.
inline absl::StatusOr<Operand> SpreadWindows(OpRun& run, const Operand& dy,
                                             const WindowDims& dims,
                                             double value = 0) {
  absl::InlinedVector<Placement, 3> placements;
  WindowDims reversed;
  for (const WindowDim& dim : dims) {
    const int64_t reach = (dim.size - 1) * dim.dilation;
    placements.push_back({dim.input + reach, reach - dim.before, dim.stride});
    reversed.push_back(
        {dim.input + reach, dim.input, dim.size, 1, dim.dilation, 0, 0});
  }
  TFPLUG_ASSIGN_OR_RETURN(const Operand spread,
                          Place(run, dy, placements, value));
  return Windows(spread, reversed);
}

// Returns a view with the dimensions [begin, end) reversed.
inline Operand Reversed(Operand view, int begin, int end) {
  for (int d = begin; d < end; ++d) {
    view.Advance((view.dim(d) - 1) * view.stride(d));
    view.stride(d) = -view.stride(d);
  }
  return view;
}

// Returns a view with its dimensions in the order `order`.
inline Operand Permuted(const Operand& view, absl::Span<const int> order) {
  Operand result = view;
  result.rank = 0;
  for (int d : order) result.AddDim(view.dim(d), view.stride(d));
  return result;
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_OPS_WINDOW_H_
