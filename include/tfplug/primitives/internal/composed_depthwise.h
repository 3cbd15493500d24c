// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_DEPTHWISE_H_
#define TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_DEPTHWISE_H_

#include <cstdint>

#include "tfplug/primitives/windows.h"

#pragma GCC visibility push(hidden)

// Depthwise convolutions composed of reductions: sums of products over windows.
// Windows are views [batch, output..., window..., channels] or, of gradients,
// [batch, input..., window..., outputs]; a filter is [window..., 1, outputs].
namespace tfplug::primitives_internal {

inline bool IsDepthwise(const Convolution& conv, const Operand& filter) {
  return conv.groups > 1 && filter.dim(filter.rank - 2) == 1;
}

// Adds the dimensions [begin, end) of `like`, with the strides of `from` or, if
// that is null, repeating the view.
inline void AddDims(Operand& view, const Operand& like, int begin, int end,
                    const Operand* from) {
  for (int d = begin; d < end; ++d) {
    view.AddDim(like.dim(d), from == nullptr ? 0 : from->stride(d));
  }
}
// Adds the dimensions [channels, outputs of a channel] of dimension `d`.
inline void AddOutputs(Operand& view, const Operand& from, int d,
                       int64_t channels) {
  const int64_t outputs = from.dim(d) / channels;
  view.AddDim(channels, outputs * from.stride(d))
      .AddDim(outputs, from.stride(d));
}

inline absl::Status ComposeDepthwise(Launcher& launcher, const Operand& windows,
                                     const Operand& filter,
                                     const Operand& image) {
  const int spatial = filter.rank - 2, last = windows.rank - 1;
  const int64_t channels = windows.dim(last);
  TFPLUG_ASSIGN_OR_RETURN(
      const Reduction* const sum,
      primitives::SumOfProducts(image.type, image.type, image.type));
  // [batch, output..., channel, output of a channel, window...] of all three
  Operand elements = ir::WithoutDims(windows),
          weights = ir::WithoutDims(filter), out = ir::WithoutDims(image);
  AddDims(elements, windows, 0, spatial + 1, &windows);
  AddDims(weights, windows, 0, spatial + 1, nullptr);
  AddDims(out, image, 0, spatial + 1, &image);
  elements.AddDim(channels, windows.stride(last))
      .AddDim(filter.dim(spatial + 1) / channels, 0);
  AddOutputs(weights, filter, spatial + 1, channels);
  AddOutputs(out, image, spatial + 1, channels);
  AddDims(elements, windows, spatial + 1, last, &windows);
  AddDims(weights, filter, 0, spatial, &filter);
  return launcher.Reduce(*sum, {elements, weights}, {out});
}

// `backward` is the filter with its window reversed.
inline absl::Status ComposeDepthwiseInputGradient(
    Launcher& launcher, const Operand& windows, const Operand& backward,
    const Operand& image_gradient) {
  const int spatial = backward.rank - 2, last = windows.rank - 1;
  const int64_t channels = image_gradient.dim(spatial + 1);
  const int64_t outputs = windows.dim(last) / channels;
  TFPLUG_ASSIGN_OR_RETURN(const Reduction* const sum,
                          primitives::SumOfProducts(windows.type, backward.type,
                                                    image_gradient.type));
  // [batch, input..., channel, window..., output of the channel]
  Operand elements = ir::WithoutDims(windows),
          weights = ir::WithoutDims(backward);
  AddDims(elements, windows, 0, spatial + 1, &windows);
  AddDims(weights, windows, 0, spatial + 1, nullptr);
  elements.AddDim(channels, outputs * windows.stride(last));
  weights.AddDim(channels, outputs * backward.stride(spatial + 1));
  AddDims(elements, windows, spatial + 1, last, &windows);
  AddDims(weights, backward, 0, spatial, &backward);
  elements.AddDim(outputs, windows.stride(last));
  weights.AddDim(outputs, backward.stride(spatial + 1));
  return launcher.Reduce(*sum, {elements, weights}, {image_gradient});
}

inline absl::Status ComposeDepthwiseFilterGradient(
    Launcher& launcher, const Operand& windows, const Operand& output_gradient,
    const Operand& filter_gradient) {
  const int spatial = filter_gradient.rank - 2, last = windows.rank - 1;
  const int64_t channels = windows.dim(last);
  TFPLUG_ASSIGN_OR_RETURN(
      const Reduction* const sum,
      primitives::SumOfProducts(windows.type, output_gradient.type,
                                filter_gradient.type));
  // [window..., channel, output of a channel, batch, output...] of all three
  Operand elements = ir::WithoutDims(windows),
          gradients = ir::WithoutDims(output_gradient),
          out = ir::WithoutDims(filter_gradient);
  AddDims(elements, windows, spatial + 1, last, &windows);
  AddDims(gradients, filter_gradient, 0, spatial, nullptr);
  AddDims(out, filter_gradient, 0, spatial, &filter_gradient);
  elements.AddDim(channels, windows.stride(last))
      .AddDim(filter_gradient.dim(spatial + 1) / channels, 0);
  AddOutputs(gradients, output_gradient, spatial + 1, channels);
  AddOutputs(out, filter_gradient, spatial + 1, channels);
  AddDims(elements, windows, 0, spatial + 1, &windows);
  AddDims(gradients, output_gradient, 0, spatial + 1, &output_gradient);
  return launcher.Reduce(*sum, {elements, gradients}, {out});
}

}  // namespace tfplug::primitives_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_DEPTHWISE_H_
