// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_CONV_H_
#define TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_CONV_H_

#include <algorithm>
#include <cstdint>

#include "tfplug/base/separate.h"
#include "tfplug/primitives/internal/compose.h"
#include "tfplug/primitives/internal/composed_depthwise.h"
#include "tfplug/primitives/windows.h"

#pragma GCC visibility push(hidden)

// Convolutions composed of copies and matrix products: windows, copied to
// dense matrices, times the filter.
namespace tfplug::primitives_internal {

// Calls use(part of a, part of b) for slices of `a` with at most `limit`
// elements, as long as splitting the dimensions [d, end) achieves this.
// Dimension d of `a` is dimension `of_b` of `b`. The first slice is a largest.
template <class Use>
absl::Status ForEachSlice(const Operand& a, int d, int end, const Operand& b,
                          int of_b, int64_t limit, Use& use) {
  const int64_t count = a.num_elements();
  if (count <= limit || d == end) return use(a, b);
  const int64_t size = a.dim(d);
  const int64_t step = std::max<int64_t>(1, limit / (count / size));
  for (int64_t begin = 0; begin < size; begin += step) {
    const int64_t stop = std::min(size, begin + step);
    TFPLUG_RETURN_IF_ERROR(ForEachSlice(ir::Range(a, d, begin, stop), d + 1,
                                        end, ir::Range(b, of_b, begin, stop),
                                        of_b + 1, limit, use));
  }
  return absl::OkStatus();
}

// Adds the dimensions [begin, end) of `from` to `to`, merging neighbours that
// are contiguous: at least one, none of size 1.
inline void AddMerged(const Operand& from, int begin, int end, Operand& to) {
  const int first = to.rank;
  for (int d = begin; d < end; ++d) {
    const int last = to.rank - 1;
    if (from.dim(d) == 1) continue;
    if (last >= first && to.stride(last) == from.stride(d) * from.dim(d)) {
      to.dim(last) *= from.dim(d);
      to.stride(last) = from.stride(d);
    } else {
      to.AddDim(from.dim(d), from.stride(d));
    }
  }
  if (to.rank == first) to.AddDim(1, 0);
}

// Returns [rows..., groups * columns] as [groups, rows..., columns], with as
// few dimensions as possible.
inline Operand AsMatrices(const Operand& view, int64_t groups) {
  const int last = view.rank - 1;
  const int64_t columns = view.dim(last) / groups;
  Operand result = ir::WithoutDims(view);
  result.AddDim(groups, columns * view.stride(last));
  AddMerged(view, 0, last, result);
  return result.AddDim(columns, view.stride(last));
}

// Computes c = a b for each group, where a is [groups, rows, inner], b [groups,
// inner, columns] and c [rows..., groups * columns].
inline absl::Status MultiplyRows(Launcher& launcher, const Operand& a,
                                 const Operand& b, const Operand& c) {
  const Operand to = AsMatrices(c, a.dim(0));
  const int last = to.rank - 1;
  Operand rows = ir::WithoutDims(a), repeated = ir::WithoutDims(b);
  rows.AddDim(a.dim(0), a.stride(0));
  repeated.AddDim(b.dim(0), b.stride(0));
  int64_t stride = a.stride(1) * a.dim(1);
  for (int d = 1; d < last; ++d) {
    stride /= to.dim(d);
    rows.AddDim(to.dim(d), stride);
    if (d + 1 < last) repeated.AddDim(to.dim(d), 0);
  }
  rows.AddDim(a.dim(2), a.stride(2));
  repeated.AddDim(b.dim(1), b.stride(1)).AddDim(b.dim(2), b.stride(2));
  return launcher.MatMul(rows, repeated, to);
}

// Windows as dense matrices, in memory that each call reuses.
class Patches {
 public:
  explicit Patches(Launcher& launcher) : launcher_(launcher) {}

  // Returns windows [pixels..., window..., channels], of which the first `kept`
  // dimensions are pixels, as [groups, pixels, window * channels of a group].
  absl::StatusOr<Operand> Copy(const Operand& windows, int kept,
                               int64_t groups) {
    const int last = windows.rank - 1;
    const int64_t depth = windows.dim(last) / groups;
    Operand grouped = ir::WithoutDims(windows);
    grouped.AddDim(groups, depth * windows.stride(last));
    AddMerged(windows, 0, kept, grouped);
    const int pixels = grouped.rank;
    Operand channels = windows;
    channels.dim(last) = depth;
    AddMerged(channels, kept, last + 1, grouped);
    if (pixels == 2 && grouped.rank == 3) return grouped;  // already a matrix

    const int64_t size = windows.num_elements();
    if (size > memory_.num_elements() || memory_.rank == 0) {
      TFPLUG_ASSIGN_OR_RETURN(memory_,
                              launcher_.Allocate(windows.type, {size}));
    }
    TFPLUG_RETURN_IF_ERROR(primitives::Copy(
        launcher_, grouped,
        Operand::Dense(memory_.data, memory_.type, ir::DimsOf(grouped))));
    return Operand::Dense(memory_.data, memory_.type,
                          {groups, ir::CountOf(windows, 0, kept),
                           ir::CountOf(windows, kept, last) * depth});
  }

 private:
  Launcher& launcher_;
  Operand memory_;
};

// Returns a dense view of the same elements.
inline absl::StatusOr<Operand> DenseOf(Launcher& launcher,
                                       const Operand& view) {
  Operand dense = Operand::Dense(view.data, view.type, ir::DimsOf(view));
  bool is_dense = true;
  for (int d = 0; d < view.rank; ++d) {
    is_dense &= view.dim(d) == 1 || view.stride(d) == dense.stride(d);
  }
  if (is_dense) return dense;
  TFPLUG_ASSIGN_OR_RETURN(dense,
                          launcher.Allocate(view.type, ir::DimsOf(view)));
  TFPLUG_RETURN_IF_ERROR(primitives::Copy(launcher, view, dense));
  return dense;
}

// Multiplies windows [batch, output..., window..., channels] with a dense
// filter [window..., channels of a group, groups * columns].
inline absl::Status MultiplyWindows(Launcher& launcher, const Operand& windows,
                                    const Operand& filter, int64_t groups,
                                    const Operand& image, int64_t max_bytes) {
  const int kept = image.rank - 1;
  const int64_t outputs = filter.dim(filter.rank - 1);
  Operand weights = ir::WithoutDims(filter);
  weights.AddDim(groups, outputs / groups)
      .AddDim(ir::CountOf(filter, 0, filter.rank - 1), outputs)
      .AddDim(outputs / groups, 1);
  Patches patches(launcher);
  auto multiply = [&](const Operand& part, const Operand& out) -> absl::Status {
    TFPLUG_ASSIGN_OR_RETURN(const Operand rows,
                            patches.Copy(part, kept, groups));
    return MultiplyRows(launcher, rows, weights, out);
  };
  return ForEachSlice(
      windows, 0, kept, image, 0,
      max_bytes / static_cast<int64_t>(DataTypeSize(image.type)), multiply);
}

TFPLUG_SEPARABLE absl::Status ComposeConv(
    Launcher& launcher, const Convolution& conv, const Operand& image,
    const Operand& filter, const Operand& output, int64_t max_bytes) {
  TFPLUG_ASSIGN_OR_RETURN(const Operand padded,
                          primitives::Padded(launcher, image, conv.windows, 0));
  const Operand windows = primitives::WindowsOf(padded, conv.windows);
  if (IsDepthwise(conv, filter)) {
    return ComposeDepthwise(launcher, windows, filter, output);
  }
  TFPLUG_ASSIGN_OR_RETURN(const Operand dense, DenseOf(launcher, filter));
  return MultiplyWindows(launcher, windows, dense, conv.groups, output,
                         max_bytes);
}

TFPLUG_SEPARABLE absl::Status ComposeConvInputGradient(
    Launcher& launcher, const Convolution& conv, const Operand& filter,
    const Operand& output_gradient, const Operand& image_gradient,
    int64_t max_bytes) {
  TFPLUG_ASSIGN_OR_RETURN(
      const Operand windows,
      primitives::SpreadWindows(launcher, output_gradient, conv.windows));
  const int spatial = filter.rank - 2;
  const Operand backward = ir::Reversed(filter, 0, spatial);
  if (IsDepthwise(conv, filter)) {
    return ComposeDepthwiseInputGradient(launcher, windows, backward,
                                         image_gradient);
  }
  // [window, outputs of a group, groups * channels of a group]
  const int64_t outputs = filter.dim(spatial + 1) / conv.groups;
  Operand turned = backward;
  turned.rank = spatial;
  turned.AddDim(outputs, backward.stride(spatial + 1))
      .AddDim(conv.groups, outputs * backward.stride(spatial + 1))
      .AddDim(filter.dim(spatial), backward.stride(spatial));
  TFPLUG_ASSIGN_OR_RETURN(Operand dense, DenseOf(launcher, turned));
  --dense.rank;
  dense.dim(spatial + 1) = conv.groups * filter.dim(spatial);
  return MultiplyWindows(launcher, windows, dense, conv.groups, image_gradient,
                         max_bytes);
}

TFPLUG_SEPARABLE absl::Status ComposeConvFilterGradient(
    Launcher& launcher, const Convolution& conv, const Operand& image,
    const Operand& output_gradient, const Operand& filter_gradient,
    int64_t max_bytes) {
  TFPLUG_ASSIGN_OR_RETURN(const Operand padded,
                          primitives::Padded(launcher, image, conv.windows, 0));
  const Operand windows = primitives::WindowsOf(padded, conv.windows);
  if (IsDepthwise(conv, filter_gradient)) {
    return ComposeDepthwiseFilterGradient(launcher, windows, output_gradient,
                                          filter_gradient);
  }
  // The gradient's pixels as rows.
  TFPLUG_ASSIGN_OR_RETURN(const Operand dense,
                          DenseOf(launcher, output_gradient));
  const Operand columns = AsMatrices(dense, conv.groups);
  const int kept = image.rank - 1;
  // Each slice computes some rows of the filter.
  const int end = windows.rank - (conv.groups == 1 ? 0 : 1);
  Patches patches(launcher);
  auto multiply = [&](const Operand& part, const Operand& out) -> absl::Status {
    TFPLUG_ASSIGN_OR_RETURN(const Operand rows,
                            patches.Copy(part, kept, conv.groups));
    return MultiplyRows(launcher, ir::Transposed(rows), columns, out);
  };
  return ForEachSlice(
      windows, kept, end, filter_gradient, 0,
      max_bytes / static_cast<int64_t>(DataTypeSize(image.type)), multiply);
}

}  // namespace tfplug::primitives_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_CONV_H_
