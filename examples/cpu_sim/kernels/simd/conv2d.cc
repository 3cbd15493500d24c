// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "kernels/simd/code.h"

// Convolution as matrix multiplication: the patches of the image under the
// windows, a row per output pixel, times the filter.
namespace cpu_sim::CPU_SIM_LEVEL {
namespace {

// Sizes of one group's matrices.
struct Sizes {
  explicit Sizes(const Conv2D& conv)
      : pixels(conv.batch * conv.rows.out * conv.cols.out),
        in_depth(conv.in_depth / conv.groups),
        out_depth(conv.out_depth / conv.groups),
        patch(conv.rows.size * conv.cols.size * in_depth) {}

  int64_t pixels;
  int64_t in_depth;
  int64_t out_depth;
  int64_t patch;
};

// Return whether the matrix of patches equals the image.
bool IsPointwise(const Window& window) {
  return window.size == 1 && window.stride == 1 && window.out == window.in;
}
bool IsPointwise(const Conv2D& conv) {
  return conv.groups == 1 && IsPointwise(conv.rows) && IsPointwise(conv.cols);
}

// Calls inside(offset in the patch, offset in the image, size) for each run of
// the patch of output pixel `pixel` that is contiguous in the image, and
// outside(offset in the patch, size) for each run outside the image.
template <typename Inside, typename Outside>
void ForEachRun(const Conv2D& conv, int64_t group, int64_t pixel, Inside inside,
                Outside outside) {
  const Window &rows = conv.rows, &cols = conv.cols;
  const int64_t depth = conv.in_depth / conv.groups;
  const int64_t col = pixel % cols.out, row = pixel / cols.out % rows.out;
  const int64_t image = pixel / cols.out / rows.out * rows.in;
  const Taps row_taps = TapsInside(rows, row), col_taps = TapsInside(cols, col);
  const int64_t patch_row = cols.size * depth;
  // Adjacent taps cover adjacent pixels.
  const bool contiguous = cols.dilation == 1 && conv.groups == 1;
  if (row_taps.begin > 0) outside(0, row_taps.begin * patch_row);
  for (int64_t r = row_taps.begin; r < row_taps.end; ++r) {
    const int64_t to = r * patch_row;
    const int64_t from =
        (image + TapPlace(rows, row, r)) * cols.in * conv.in_depth +
        group * depth;
    const auto place = [&](int64_t tap) {
      return from + TapPlace(cols, col, tap) * conv.in_depth;
    };
    if (col_taps.begin > 0) outside(to, col_taps.begin * depth);
    if (contiguous) {
      inside(to + col_taps.begin * depth, place(col_taps.begin),
             (col_taps.end - col_taps.begin) * depth);
    } else {
      for (int64_t c = col_taps.begin; c < col_taps.end; ++c) {
        inside(to + c * depth, place(c), depth);
      }
    }
    if (col_taps.end < cols.size) {
      outside(to + col_taps.end * depth, (cols.size - col_taps.end) * depth);
    }
  }
  if (row_taps.end < rows.size) {
    outside(row_taps.end * patch_row, (rows.size - row_taps.end) * patch_row);
  }
}

// Gathers `count` patches, starting at output pixel `first`.
void GatherPatches(const Conv2D& conv, int64_t group, int64_t first,
                   int64_t count, const float* x, float* patches) {
  const int64_t size = Sizes(conv).patch;
  for (int64_t i = 0; i < count; ++i, patches += size) {
    ForEachRun(
        conv, group, first + i,
        [&](int64_t to, int64_t from, int64_t n) {
          std::memcpy(patches + to, x + from, n * sizeof(float));
        },
        [&](int64_t to, int64_t n) {
          std::memset(patches + to, 0, n * sizeof(float));
        });
  }
}

// Does the reverse of GatherPatches: adds each patch to its position in the
// image.
void ScatterPatches(const Conv2D& conv, int64_t group, int64_t first,
                    int64_t count, const float* patches, float* x) {
  const int64_t size = Sizes(conv).patch;
  for (int64_t i = 0; i < count; ++i, patches += size) {
    ForEachRun(
        conv, group, first + i,
        [&](int64_t from, int64_t to, int64_t n) {
          for (int64_t k = 0; k < n; ++k) x[to + k] += patches[from + k];
        },
        [](int64_t, int64_t) {});
  }
}

void Forward(const Conv2D& conv, const Epilogue& epilogue, const float* x,
             const float* filter, float* y, float* workspace) {
  const Sizes size(conv);
  const bool pointwise = IsPointwise(conv);
  for (int64_t first = 0; first < size.pixels; first += conv.tile) {
    const int64_t count = std::min(conv.tile, size.pixels - first);
    float* out = y + first * conv.out_depth;
    for (int64_t group = 0; group < conv.groups; ++group) {
      const float* patches = x + first * conv.in_depth;
      if (!pointwise) {
        GatherPatches(conv, group, first, count, x, workspace);
        patches = workspace;
      }
      Multiply(count, size.out_depth, size.patch, {patches, size.patch},
               {filter + group * size.out_depth, conv.out_depth},
               out + group * size.out_depth, conv.out_depth, GemmMode::kAssign);
    }
    Apply(epilogue, count, conv.out_depth, out, out);
  }
}

void InputGradient(const Conv2D& conv, const float* filter, const float* dy,
                   float* dx, float* workspace) {
  const Sizes size(conv);
  const bool pointwise = IsPointwise(conv);
  if (!pointwise) {
    std::memset(dx, 0,
                conv.batch * conv.rows.in * conv.cols.in * conv.in_depth *
                    sizeof(float));
  }
  for (int64_t first = 0; first < size.pixels; first += conv.tile) {
    const int64_t count = std::min(conv.tile, size.pixels - first);
    for (int64_t group = 0; group < conv.groups; ++group) {
      const int64_t out = group * size.out_depth;
      float* patches = pointwise ? dx + first * conv.in_depth : workspace;
      Multiply(count, size.patch, size.out_depth,
               {dy + first * conv.out_depth + out, conv.out_depth},
               {filter + out, conv.out_depth, true}, patches, size.patch,
               GemmMode::kAssign);
      if (!pointwise) {
        ScatterPatches(conv, group, first, count, patches, dx);
      }
    }
  }
}

void FilterGradient(const Conv2D& conv, const float* x, const float* dy,
                    float* dfilter, float* workspace) {
  const Sizes size(conv);
  const bool pointwise = IsPointwise(conv);
  std::memset(dfilter, 0, size.patch * conv.out_depth * sizeof(float));
  for (int64_t first = 0; first < size.pixels; first += conv.tile) {
    const int64_t count = std::min(conv.tile, size.pixels - first);
    for (int64_t group = 0; group < conv.groups; ++group) {
      const int64_t out = group * size.out_depth;
      const float* patches = x + first * conv.in_depth;
      if (!pointwise) {
        GatherPatches(conv, group, first, count, x, workspace);
        patches = workspace;
      }
      Multiply(size.patch, size.out_depth, count, {patches, size.patch, true},
               {dy + first * conv.out_depth + out, conv.out_depth},
               dfilter + out, conv.out_depth, GemmMode::kAdd);
    }
  }
}

}  // namespace

const Conv2DCode kConv2D = {&Forward, &InputGradient, &FilterGradient};

}  // namespace cpu_sim::CPU_SIM_LEVEL
