// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_WINDOWS_H_
#define TFPLUG_PRIMITIVES_WINDOWS_H_

#include <algorithm>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/primitives/elements.h"
#include "tfplug/primitives/nn.h"

#pragma GCC visibility push(hidden)

// Images under windows as views. The windows of an image are a view [batch,
// output..., window..., channels] that overlaps itself. A gradient with respect
// to the image is again a sum over windows, of the spread gradient: zeros
// between and around its elements.
namespace tfplug::primitives {

// Copies an image into a larger one that is filled with `value`. Element 0 of
// each spatial dimension goes to `first`, the next ones follow at `step`;
// elements outside are dropped.
struct Placement {
  int64_t size, first, step;
};
inline absl::StatusOr<Operand> Place(Launcher& launcher, Operand image,
                                     absl::Span<const Placement> dims,
                                     double value) {
  absl::InlinedVector<int64_t, 8> sizes = {image.dim(0)};
  for (const Placement& dim : dims) sizes.push_back(dim.size);
  sizes.push_back(image.dim(image.rank - 1));
  TFPLUG_ASSIGN_OR_RETURN(const Operand result,
                          launcher.Allocate(image.type, sizes));
  TFPLUG_RETURN_IF_ERROR(Fill(launcher, result, value));
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
    image = ir::Range(image, d, begin,
                      std::min(end, std::max(begin, image.dim(d))));
    inside.Advance((dim.first + begin * dim.step) * result.stride(d));
    inside.dim(d) = image.dim(d);
    inside.stride(d) = dim.step * result.stride(d);
  }
  TFPLUG_RETURN_IF_ERROR(Copy(launcher, image, inside));
  return result;
}

// Returns the image with its padding, or the image itself if there is none.
inline absl::StatusOr<Operand> Padded(Launcher& launcher, const Operand& image,
                                      const Windows& windows, double value) {
  absl::InlinedVector<Placement, 3> placements;
  bool is_padded = false;
  for (const Window& window : windows) {
    is_padded = is_padded || window.before != 0 || window.after != 0;
    placements.push_back(
        {window.input + window.before + window.after, window.before, 1});
  }
  if (!is_padded) return image;
  return Place(launcher, image, placements, value);
}

// Returns the windows of a padded image.
inline Operand WindowsOf(const Operand& image, const Windows& windows) {
  Operand view = image;
  view.rank = 1;
  int d = 1;
  for (const Window& window : windows) {
    view.AddDim(window.output, image.stride(d++) * window.stride);
  }
  d = 1;
  for (const Window& window : windows) {
    view.AddDim(window.size, image.stride(d++) * window.dilation);
  }
  return view.AddDim(image.dim(d), image.stride(d));
}

// Spreads the gradient `dy` of the windows so that the windows of the result,
// [batch, input..., window..., channels], are the elements that each element of
// the image contributed to; window element k is that of the reversed window.
inline absl::StatusOr<Operand> SpreadWindows(Launcher& launcher,
                                             const Operand& dy,
                                             const Windows& windows,
                                             double value = 0) {
  absl::InlinedVector<Placement, 3> placements;
  Windows reversed;
  for (const Window& window : windows) {
    const int64_t reach = (window.size - 1) * window.dilation;
    placements.push_back(
        {window.input + reach, reach - window.before, window.stride});
    reversed.push_back({window.input + reach, window.input, window.size, 1,
                        window.dilation, 0, 0});
  }
  TFPLUG_ASSIGN_OR_RETURN(const Operand spread,
                          Place(launcher, dy, placements, value));
  return WindowsOf(spread, reversed);
}

// Moves the channels of windows before the window: [batch, output..., channels,
// window...].
inline Operand WithWindowLast(const Operand& windows, int spatial) {
  const int last = windows.rank - 1;
  Operand view = windows;
  view.rank = 1 + spatial;
  view.AddDim(windows.dim(last), windows.stride(last));
  for (int d = 1 + spatial; d < last; ++d) {
    view.AddDim(windows.dim(d), windows.stride(d));
  }
  return view;
}

}  // namespace tfplug::primitives

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_WINDOWS_H_
