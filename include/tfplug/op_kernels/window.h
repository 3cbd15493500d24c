// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_WINDOW_H_
#define TFPLUG_OP_KERNELS_WINDOW_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/matmul.h"
#include "tfplug/primitives/nn.h"

#pragma GCC visibility push(hidden)

// The attributes of convolutions and pooling, and the shapes of their images.
namespace tfplug::op_kernels_internal {

// Returns a view with the channels last.
inline Operand ChannelsLast(const Operand& view, bool channels_first) {
  return channels_first ? ir::WithDimLast(view, 1) : view;
}
// Returns the shape of an image with this batch, channels and output size.
inline Shape ImageShape(int64_t batch, const Windows& windows, int64_t channels,
                        bool channels_first) {
  Shape shape = {batch};
  if (channels_first) shape.add_dim(channels);
  for (const Window& window : windows) shape.add_dim(window.output);
  if (!channels_first) shape.add_dim(channels);
  return shape;
}
// Returns an error unless an argument of a pooling op has this shape.
inline absl::Status CheckShape(const char* name, const Operand& view,
                               const Shape& want) {
  if (ShapeOf(view) == want) return absl::OkStatus();
  return absl::InvalidArgumentError("Expected " + std::string(name) +
                                    " shape to be " + want.ToString() +
                                    ", but got " + ShapeOf(view).ToString());
}

// The attributes strides, padding, explicit_paddings, dilations, data_format
// and ksize of an op with `spatial` dimensions.
class WindowAttrs {
 public:
  absl::Status Init(KernelConstruction& construction, int spatial,
                    bool has_default_dilations = false) {
    spatial_ = spatial;
    TFPLUG_ASSIGN_OR_RETURN(channels_first_, HasChannelsFirst(construction));
    TFPLUG_ASSIGN_OR_RETURN(padding_,
                            construction.GetAttr<std::string>("padding"));
    for (auto [name, list] : {std::make_pair("strides", &strides_),
                              std::make_pair("dilations", &dilations_),
                              std::make_pair("rates", &dilations_),
                              std::make_pair("ksize", &sizes_),
                              std::make_pair("ksizes", &sizes_)}) {
      if (!construction.HasAttr(name)) continue;
      TFPLUG_ASSIGN_OR_RETURN(const auto values,
                              construction.GetAttr<std::vector<int32_t>>(name));
      if (values.empty() && list == &dilations_ && has_default_dilations) {
        continue;
      }
      list->assign(values.begin(), values.end());
      TFPLUG_RETURN_IF_ERROR(
          CheckList(name, *list, construction.HasAttr("ksize")));
    }
    if (construction.HasAttr("explicit_paddings") && padding_ == "EXPLICIT") {
      TFPLUG_ASSIGN_OR_RETURN(
          paddings_,
          construction.GetAttr<std::vector<int64_t>>("explicit_paddings"));
      for (int64_t padding : paddings_) {
        if (padding >= 0) continue;
        return absl::InvalidArgumentError(
            "All elements of explicit_paddings must be nonnegative");
      }
      const size_t size = 2 * (static_cast<size_t>(spatial) + 2);
      bool is_valid = paddings_.size() == size;
      for (size_t i = 0; is_valid && i < size; ++i) {
        const bool is_spatial = i >= 2 && i / 2 != Position(spatial);
        is_valid = is_spatial || paddings_[i] == 0;
      }
      if (!is_valid) {
        return absl::InvalidArgumentError(
            "explicit_paddings must have " + std::to_string(size) +
            " elements, which are 0 for the batch and depth dimensions");
      }
    }
    return absl::OkStatus();
  }

  // Sets the sizes and strides of windows that are inputs.
  absl::Status SetWindow(const Ints& sizes, const Ints& strides) {
    sizes_.assign(sizes.begin(), sizes.end());
    strides_.assign(strides.begin(), strides.end());
    TFPLUG_RETURN_IF_ERROR(CheckList("ksize", sizes_, /*is_pooling=*/true));
    return CheckList("strides", strides_, /*is_pooling=*/true);
  }

  bool channels_first() const { return channels_first_; }
  int spatial() const { return spatial_; }

  // Returns the geometry for an image, and for a window of the op's or of these
  // sizes.
  absl::StatusOr<Windows> Over(const Operand& image) const {
    return Over(image, [&](int i) { return sizes_[Position(i)]; });
  }
  template <class SizeOfWindow>
  absl::StatusOr<Windows> Over(const Operand& image, SizeOfWindow size,
                               bool may_be_empty = false) const {
    Windows windows;
    for (int i = 0; i < spatial_; ++i) {
      Window window = {
          image.dim(i + 1), 0, size(i), strides_[Position(i)], 1, 0, 0};
      if (!dilations_.empty()) window.dilation = dilations_[Position(i)];
      const int64_t extent = (window.size - 1) * window.dilation + 1;
      if (padding_ == "SAME") {
        window.output = (window.input + window.stride - 1) / window.stride;
        const int64_t padding = std::max<int64_t>(
            0, (window.output - 1) * window.stride + extent - window.input);
        window.before = padding / 2;
        window.after = padding - window.before;
      } else {
        if (padding_ == "EXPLICIT") {
          window.before = paddings_[2 * Position(i)];
          window.after = paddings_[2 * Position(i) + 1];
        }
        window.output = (window.input + window.before + window.after - extent +
                         window.stride) /
                        window.stride;
      }
      if (window.size < (may_be_empty ? 0 : 1)) {
        return absl::InvalidArgumentError(
            "filter must not have zero elements (i.e. all dimensions must be "
            "non-zero)");
      }
      if (!sizes_.empty() && std::max(window.before, window.after) >= extent &&
          padding_ == "EXPLICIT") {
        const bool is_after = window.after >= extent;
        return absl::InvalidArgumentError(
            absl::StrCat(i == 0 ? (is_after ? "Bottom" : "Top")
                                : (is_after ? "Right" : "Left"),
                         " padding ", is_after ? window.after : window.before,
                         " needs to be smaller than the window size ", extent));
      }
      if (window.output < 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "Computed output size would be negative: ", window.output,
            " [input_size: ", window.input, ", effective_filter_size: ", extent,
            ", stride: ", window.stride, "]"));
      }
      windows.push_back(window);
    }
    return windows;
  }

 private:
  // Returns an error unless a list has a positive element for each dimension of
  // the image, which is 1 for the batch and the channels.
  absl::Status CheckList(const char* name, absl::Span<const int64_t> list,
                         bool is_pooling) const {
    const size_t rank = static_cast<size_t>(spatial_) + 2;
    bool is_valid = list.size() == rank;
    for (int64_t value : list) is_valid = is_valid && value > 0;
    if (!is_valid) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " must specify ", rank, " positive dimensions"));
    }
    if (list[0] == 1 && list[Position(spatial_)] == 1) return absl::OkStatus();
    if (is_pooling && list[0] != 1) {
      return absl::UnimplementedError(
          "Pooling is not yet supported on the batch dimension.");
    }
    return absl::UnimplementedError(
        std::string(name) + " in the batch and depth dimensions must be 1");
  }
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

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_WINDOW_H_
