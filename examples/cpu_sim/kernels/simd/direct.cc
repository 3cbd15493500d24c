// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "kernels/simd/code.h"
#include "kernels/simd/vectors.h"

// Convolution without a matrix of patches, for small filters: a few output
// pixels and channels are in registers. The columns of a row of taps and their
// channels are one run of adjacent elements in the image, and of rows in the
// filter.
namespace cpu_sim::CPU_SIM_LEVEL {
namespace {

// Returns the number of elements that the windows cover.
int64_t Extent(const Window& window) {
  return (window.out - 1) * window.stride + window.size;
}

struct Image {
  const float* data;
  int64_t row;  // elements
};

// Returns the elements of one image that the windows cover: the image itself, or
// a copy in the workspace with zeros outside the image.
Image Pad(const Conv2D& conv, const float* x, float* workspace) {
  const Window &rows = conv.rows, &cols = conv.cols;
  const int64_t depth = conv.in_depth, width = Extent(cols);
  if (rows.pad == 0 && cols.pad == 0 && Extent(rows) <= rows.in &&
      width <= cols.in) {
    return {x, cols.in * depth};
  }
  const int64_t left = std::min(std::max<int64_t>(cols.pad, 0), width);
  const int64_t from = std::max<int64_t>(-cols.pad, 0);
  const int64_t count =
      std::max<int64_t>(0, std::min(cols.in - from, width - left));
  const auto bytes = [&](int64_t pixels) {
    return static_cast<size_t>(pixels * depth) * sizeof(float);
  };
  float* to = workspace;
  for (int64_t i = 0; i < Extent(rows); ++i, to += width * depth) {
    const int64_t row = i - rows.pad;
    if (row < 0 || row >= rows.in) {
      std::memset(to, 0, bytes(width));
      continue;
    }
    std::memset(to, 0, bytes(left));
    std::memcpy(to + left * depth, x + (row * cols.in + from) * depth,
                bytes(count));
    std::memset(to + (left + count) * depth, 0, bytes(width - left - count));
  }
  return {workspace, width * depth};
}

// The sizes of the loops over one image.
struct Loops {
  Loops(const Conv2D& conv, int64_t image_row)
      : rows(conv.rows.size),
        run(conv.cols.size * conv.in_depth),
        x_row(image_row),
        x_pixel(conv.cols.stride * conv.in_depth),
        depth(conv.out_depth) {}

  int64_t rows;     // of taps
  int64_t run;      // elements of a row of taps
  int64_t x_row;    // elements between rows of the image
  int64_t x_pixel;  // elements between the windows of adjacent pixels
  int64_t depth;    // output channels
};

// Calls use(lanes, vectors, channel) for blocks that cover `depth` channels.
template <typename Use>
void ForEachBlockOf(int64_t depth, Use use) {
  using std::integral_constant;
  constexpr int64_t kStep = kWidth;
  int64_t c = 0;
  for (; c + 4 * kStep <= depth; c += 4 * kStep) {
    use(integral_constant<int, kWidth>(), integral_constant<int, 4>(), c);
  }
  for (; c + 2 * kStep <= depth; c += 2 * kStep) {
    use(integral_constant<int, kWidth>(), integral_constant<int, 2>(), c);
  }
  for (; c + kWidth <= depth; c += kWidth) {
    use(integral_constant<int, kWidth>(), integral_constant<int, 1>(), c);
  }
  if constexpr (kWidth > 8) {
    for (; c + 8 <= depth; c += 8) {
      use(integral_constant<int, 8>(), integral_constant<int, 1>(), c);
    }
  }
  for (; c + 4 <= depth; c += 4) {
    use(integral_constant<int, 4>(), integral_constant<int, 1>(), c);
  }
  for (; c < depth; ++c) {
    use(integral_constant<int, 1>(), integral_constant<int, 1>(), c);
  }
}

// Returns how many elements are combined with `vectors` vectors at once: as many
// sums as registers hold.
template <int vectors>
constexpr int64_t kElements = vectors == 1   ? 8
                              : vectors == 2 ? 6
                              : kWidth == 16 ? 6
                                             : 3;

template <int lanes, int vectors, int pixels>
void ForwardPixels(const Loops& loops, const float* x, const float* filter,
                   float* y) {
  Vector<lanes> sums[pixels][vectors] = {};
  for (int64_t r = 0; r < loops.rows; ++r, x += loops.x_row) {
    for (int64_t i = 0; i < loops.run; ++i, filter += loops.depth) {
      Vector<lanes> weights[vectors];
      for (int64_t v = 0; v < vectors; ++v) {
        weights[v] = Load<lanes>(filter + v * lanes);
      }
      for (int p = 0; p < pixels; ++p) {
        const float element = x[p * loops.x_pixel + i];
        for (int v = 0; v < vectors; ++v) sums[p][v] += weights[v] * element;
      }
    }
  }
  for (int p = 0; p < pixels; ++p) {
    for (int64_t v = 0; v < vectors; ++v) {
      Store<lanes>(sums[p][v], y + p * loops.depth + v * lanes);
    }
  }
}

// Computes `count` adjacent pixels. A few that are left over cost more than a
// block, for each waits for its own sum: the last block repeats some pixels.
template <int lanes, int vectors, int pixels>
void ForwardRow(const Loops& loops, int64_t count, const float* x,
                const float* filter, float* y) {
  if constexpr (pixels > 1) {
    if (count < pixels) {
      return ForwardRow<lanes, vectors, pixels / 2>(loops, count, x, filter, y);
    }
  }
  const auto forward = [&](auto some, int64_t p) {
    ForwardPixels<lanes, vectors, some>(loops, x + p * loops.x_pixel, filter,
                                        y + p * loops.depth);
  };
  int64_t p = 0;
  for (; p + pixels <= count; p += pixels) {
    forward(std::integral_constant<int, pixels>(), p);
  }
  if (p + 1 < count) {
    forward(std::integral_constant<int, pixels>(), count - pixels);
  } else if (p < count) {
    forward(std::integral_constant<int, 1>(), p);
  }
}

void ForwardImages(const Conv2D& conv, const Epilogue& epilogue, const float* x,
                   const float* filter, float* y, float* workspace) {
  const int64_t pixels = conv.cols.out;
  for (int64_t b = 0; b < conv.batch; ++b) {
    const Image image = Pad(conv, x, workspace);
    const Loops loops(conv, image.row);
    for (int64_t row = 0; row < conv.rows.out; ++row) {
      const float* const from = image.data + row * conv.rows.stride * image.row;
      ForEachBlockOf(conv.out_depth, [&](auto lanes, auto vectors, int64_t c) {
        ForwardRow<lanes, vectors, kElements<vectors>>(loops, pixels, from,
                                                       filter + c, y + c);
      });
      Apply(epilogue, pixels, conv.out_depth, y, y);
      y += pixels * conv.out_depth;
    }
    x += conv.rows.in * conv.cols.in * conv.in_depth;
  }
}

// The window from y to x: tap t of an element of x is tap size - 1 - t of the
// element of y to which it contributed.
Window Reverse(const Window& window) {
  return {window.out, window.in, window.size,
          1,          1,         window.size - 1 - window.pad};
}

// The stride must be 1.
void InputGradient(const Conv2D& conv, const float* filter, const float* dy,
                   float* dx, float* workspace) {
  // The filter with its taps reversed and its channels exchanged.
  const int64_t taps = conv.rows.size * conv.cols.size;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const float* const from = filter + tap * conv.in_depth * conv.out_depth;
    float* const to =
        workspace + (taps - 1 - tap) * conv.in_depth * conv.out_depth;
    for (int64_t o = 0; o < conv.out_depth; ++o) {
      for (int64_t i = 0; i < conv.in_depth; ++i) {
        to[o * conv.in_depth + i] = from[i * conv.out_depth + o];
      }
    }
  }
  Conv2D reverse = conv;
  reverse.rows = Reverse(conv.rows);
  reverse.cols = Reverse(conv.cols);
  std::swap(reverse.in_depth, reverse.out_depth);
  ForwardImages(reverse, Epilogue(), dy, workspace, dx,
                workspace + taps * conv.in_depth * conv.out_depth);
}

// Adds the products of `elements` adjacent elements of the image and a block of
// channels, in a band of `lines` rows of `pixels` output pixels.
template <int lanes, int vectors, int elements>
void AddProducts(const Loops& loops, int64_t lines, int64_t pixels,
                 int64_t x_line, int64_t dy_line, const float* x,
                 const float* dy, float* dfilter) {
  Vector<lanes> sums[elements][vectors] = {};
  for (int64_t line = 0; line < lines; ++line, x += x_line, dy += dy_line) {
    const float *from = x, *gradient = dy;
    for (int64_t p = 0; p < pixels; ++p) {
      Vector<lanes> of_pixel[vectors];
      for (int64_t v = 0; v < vectors; ++v) {
        of_pixel[v] = Load<lanes>(gradient + v * lanes);
      }
      for (int e = 0; e < elements; ++e) {
        for (int v = 0; v < vectors; ++v) sums[e][v] += of_pixel[v] * from[e];
      }
      from += loops.x_pixel;
      gradient += loops.depth;
    }
  }
  for (int e = 0; e < elements; ++e) {
    for (int64_t v = 0; v < vectors; ++v) {
      float* const to = dfilter + e * loops.depth + v * lanes;
      Store<lanes>(Load<lanes>(to) + sums[e][v], to);
    }
  }
}

void FilterGradient(const Conv2D& conv, const float* x, const float* dy,
                    float* dfilter, float* workspace) {
  constexpr int64_t kBand = 256;  // pixels whose products are in one float
  std::memset(dfilter, 0,
              static_cast<size_t>(conv.rows.size * conv.cols.size *
                                  conv.in_depth * conv.out_depth) *
                  sizeof(float));
  const int64_t width = conv.cols.out, dy_line = width * conv.out_depth;
  const int64_t band =
      std::max<int64_t>(1, kBand / std::max<int64_t>(width, 1));
  for (int64_t b = 0; b < conv.batch; ++b) {
    const Image image = Pad(conv, x, workspace);
    const Loops loops(conv, image.row);
    const int64_t x_line = conv.rows.stride * image.row;
    for (int64_t row = 0; row < conv.rows.out; row += band) {
      const int64_t lines = std::min(band, conv.rows.out - row);
      for (int64_t p = 0; p < width; p += kBand) {
        const int64_t pixels = std::min(kBand, width - p);
        const float* const gradient = dy + row * dy_line + p * conv.out_depth;
        for (int64_t r = 0; r < loops.rows; ++r) {
          const float* const from =
              image.data + row * x_line + r * image.row + p * loops.x_pixel;
          float* const to = dfilter + r * loops.run * conv.out_depth;
          ForEachBlockOf(
              conv.out_depth, [&](auto lanes, auto vectors, int64_t c) {
                constexpr int kMany = kElements<vectors>;
                const auto add = [&](auto function, int64_t i) {
                  function(loops, lines, pixels, x_line, dy_line, from + i,
                           gradient + c, to + i * conv.out_depth + c);
                };
                int64_t i = 0;
                for (; i + kMany <= loops.run; i += kMany) {
                  add(&AddProducts<lanes, vectors, kMany>, i);
                }
                for (; i + 3 <= loops.run; i += 3) {
                  add(&AddProducts<lanes, vectors, 3>, i);
                }
                for (; i < loops.run; ++i) {
                  add(&AddProducts<lanes, vectors, 1>, i);
                }
              });
        }
      }
    }
    x += conv.rows.in * conv.cols.in * conv.in_depth;
    dy += conv.rows.out * dy_line;
  }
}

}  // namespace

const Conv2DCode kDirect = {&ForwardImages, &InputGradient, &FilterGradient};

}  // namespace cpu_sim::CPU_SIM_LEVEL
