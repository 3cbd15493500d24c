// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <type_traits>

#include "kernels/simd/code.h"
#include "kernels/simd/vectors.h"

// Depthwise convolution. Vector lanes hold adjacent channels; products are
// summed over the taps.
namespace cpu_sim::CPU_SIM_LEVEL {
namespace {

// Calls use(lanes, channel) for vectors that cover `depth` channels: wide ones
// first, then narrower ones, and single channels.
template <typename Use>
void ForEachVector(int64_t depth, Use use) {
  int64_t c = 0;
  for (; c + kWidth <= depth; c += kWidth) {
    use(std::integral_constant<int, kWidth>(), c);
  }
  if constexpr (kWidth > 8) {
    for (; c + 8 <= depth; c += 8) {
      use(std::integral_constant<int, 8>(), c);
    }
  }
  for (; kWidth > 4 && c + 4 <= depth; c += 4) {
    use(std::integral_constant<int, 4>(), c);
  }
  for (; c < depth; ++c) use(std::integral_constant<int, 1>(), c);
}

// Returns the position in the image of tap (row, col) of window (o_row, o_col).
int64_t Place(const Conv2D& conv, int64_t image, int64_t o_row, int64_t o_col,
              int64_t row, int64_t col) {
  return ((image * conv.rows.in + TapPlace(conv.rows, o_row, row)) *
              conv.cols.in +
          TapPlace(conv.cols, o_col, col)) *
         conv.in_depth;
}

// ---- General case: tap by tap -----------------------------------------------

// Calls use(offset in y, offset in x, offset in the filter) for each tap inside
// the image of the output pixels [begin, end) of a row.
template <typename Use>
void ForEachTap(const Conv2D& conv, int64_t image, int64_t row, int64_t begin,
                int64_t end, Use use) {
  const Taps rows = TapsInside(conv.rows, row);
  for (int64_t col = begin; col < end; ++col) {
    const Taps cols = TapsInside(conv.cols, col);
    const int64_t y = (image * conv.rows.out + row) * conv.cols.out + col;
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      for (int64_t c = cols.begin; c < cols.end; ++c) {
        use(y * conv.out_depth, Place(conv, image, row, col, r, c),
            (r * conv.cols.size + c) * conv.out_depth);
      }
    }
  }
}

// Calls use(input channel, output channel) for all pairs.
template <typename Use>
void ForEachChannel(const Conv2D& conv, Use use) {
  const int64_t multiplier = conv.out_depth / conv.in_depth;
  if (multiplier == 1) {
    for (int64_t c = 0; c < conv.in_depth; ++c) use(c, c);
    return;
  }
  for (int64_t c = 0; c < conv.in_depth; ++c) {
    for (int64_t m = 0; m < multiplier; ++m) use(c, c * multiplier + m);
  }
}

// ---- Multiplier 1: in registers ---------------------------------------------

// Returns the output pixels [begin, end) of a row whose column taps are all
// inside the image.
Taps Interior(const Window& cols) {
  const auto is_full = [&](int64_t col) {
    const Taps taps = TapsInside(cols, col);
    return taps.begin == 0 && taps.end == cols.size;
  };
  Taps pixels{0, cols.out};
  while (pixels.begin < cols.out && !is_full(pixels.begin)) ++pixels.begin;
  while (pixels.end > pixels.begin && !is_full(pixels.end - 1)) --pixels.end;
  return pixels;
}

// The strides, in elements, of the operands of a row of output pixels.
struct Steps {
  explicit Steps(const Conv2D& conv)
      : row_tap(conv.rows.dilation * conv.cols.in * conv.in_depth),
        col_tap(conv.cols.dilation * conv.in_depth),
        pixel(conv.cols.stride * conv.in_depth) {}

  int64_t row_tap;
  int64_t col_tap;
  int64_t pixel;
};

// Computes `pixels` adjacent output pixels. x points to the first tap of the
// first pixel; the filter's taps are `filter_step` apart.
template <int pixels>
void ForwardPixels(const Steps& step, Taps rows, Taps cols, int64_t width,
                   int64_t depth, const float* x, const float* filter,
                   int64_t filter_step, float* y) {
  ForEachVector(depth, [&](auto lanes, int64_t channel) {
    Vector<lanes> sums[pixels] = {};
    const float* x_row = x + channel;
    for (int64_t r = rows.begin; r < rows.end; ++r, x_row += step.row_tap) {
      const float* from = x_row;
      for (int64_t c = cols.begin; c < cols.end; ++c, from += step.col_tap) {
        const auto weights =
            Load<lanes>(filter + (r * width + c) * filter_step + channel);
        for (int p = 0; p < pixels; ++p) {
          sums[p] += weights * Load<lanes>(from + p * step.pixel);
        }
      }
    }
    for (int p = 0; p < pixels; ++p) {
      Store<lanes>(sums[p], y + p * depth + channel);
    }
  });
}

void ForwardInRegisters(const Conv2D& conv, const Epilogue& epilogue,
                        const float* x, const float* filter,
                        int64_t filter_step, float* y) {
  constexpr int kPixels = 4;
  const Steps step(conv);
  const Taps interior = Interior(conv.cols);
  for (int64_t image = 0; image < conv.batch; ++image) {
    for (int64_t row = 0; row < conv.rows.out; ++row) {
      const Taps rows = TapsInside(conv.rows, row);
      float* y_row =
          y + (image * conv.rows.out + row) * conv.cols.out * conv.out_depth;
      for (int64_t col = 0; col < conv.cols.out;) {
        const Taps cols = TapsInside(conv.cols, col);
        const bool many =
            col >= interior.begin && col + kPixels <= interior.end;
        const auto forward = many ? &ForwardPixels<kPixels> : &ForwardPixels<1>;
        forward(step, rows, cols, conv.cols.size, conv.in_depth,
                x + Place(conv, image, row, col, rows.begin, cols.begin),
                filter, filter_step, y_row + col * conv.out_depth);
        col += many ? kPixels : 1;
      }
      Apply(epilogue, conv.cols.out, conv.out_depth, y_row, y_row);
    }
  }
}

// Adds the contributions of `pixels` output pixels to `taps` adjacent taps. x
// points to the first tap of the first pixel.
template <int taps>
void FilterGradientTaps(const Steps& step, int64_t pixels, int64_t depth,
                        const float* x, const float* dy, float* dfilter) {
  ForEachVector(depth, [&](auto lanes, int64_t channel) {
    Vector<lanes> sums[taps] = {};
    for (int64_t p = 0; p < pixels; ++p) {
      const auto gradient = Load<lanes>(dy + p * depth + channel);
      const float* from = x + p * step.pixel + channel;
      for (int t = 0; t < taps; ++t) {
        sums[t] += gradient * Load<lanes>(from + t * step.col_tap);
      }
    }
    for (int t = 0; t < taps; ++t) {
      float* to = dfilter + t * depth + channel;
      Store<lanes>(Load<lanes>(to) + sums[t], to);
    }
  });
}

// ---- The functions of the table ---------------------------------------------

void Forward(const Conv2D& conv, const Epilogue& epilogue, const float* x,
             const float* filter, float* y) {
  if (conv.in_depth == conv.out_depth) {
    ForwardInRegisters(conv, epilogue, x, filter, conv.out_depth, y);
    return;
  }
  const int64_t row_size = conv.cols.out * conv.out_depth;
  for (int64_t image = 0; image < conv.batch; ++image) {
    for (int64_t row = 0; row < conv.rows.out; ++row) {
      float* y_row = y + (image * conv.rows.out + row) * row_size;
      std::memset(y_row, 0, row_size * sizeof(float));
      ForEachTap(conv, image, row, 0, conv.cols.out,
                 [&](int64_t to, int64_t from, int64_t tap) {
                   ForEachChannel(conv, [&](int64_t in, int64_t out) {
                     y[to + out] += x[from + in] * filter[tap + out];
                   });
                 });
      Apply(epilogue, conv.cols.out, conv.out_depth, y_row, y_row);
    }
  }
}

// Returns the convolution from y to x, with the window reversed: tap t of an
// element of x is tap size - 1 - t of the element of y to which it contributed.
Window Reverse(const Window& window) {
  return {window.out,      window.in,
          window.size,     1,
          window.dilation, (window.size - 1) * window.dilation - window.pad};
}

void InputGradient(const Conv2D& conv, const float* filter, const float* dy,
                   float* dx) {
  if (conv.in_depth == conv.out_depth && conv.rows.stride == 1 &&
      conv.cols.stride == 1) {
    Conv2D reverse = conv;
    reverse.rows = Reverse(conv.rows);
    reverse.cols = Reverse(conv.cols);
    const int64_t last_tap = conv.rows.size * conv.cols.size - 1;
    ForwardInRegisters(reverse, Epilogue(), dy,
                       filter + last_tap * conv.in_depth, -conv.in_depth, dx);
    return;
  }
  std::memset(
      dx, 0,
      conv.batch * conv.rows.in * conv.cols.in * conv.in_depth * sizeof(float));
  for (int64_t image = 0; image < conv.batch; ++image) {
    for (int64_t row = 0; row < conv.rows.out; ++row) {
      ForEachTap(conv, image, row, 0, conv.cols.out,
                 [&](int64_t from, int64_t to, int64_t tap) {
                   ForEachChannel(conv, [&](int64_t in, int64_t out) {
                     dx[to + in] += dy[from + out] * filter[tap + out];
                   });
                 });
    }
  }
}

void FilterGradient(const Conv2D& conv, const float* x, const float* dy,
                    float* dfilter) {
  constexpr int kTaps = 3;
  const int64_t depth = conv.out_depth;
  const Steps step(conv);
  std::memset(dfilter, 0,
              conv.rows.size * conv.cols.size * depth * sizeof(float));
  const auto add_tap = [&](int64_t y, int64_t from, int64_t tap) {
    ForEachChannel(conv, [&](int64_t in, int64_t out) {
      dfilter[tap + out] += x[from + in] * dy[y + out];
    });
  };
  Taps inner = Interior(conv.cols);
  if (conv.in_depth != depth) inner = {0, 0};
  for (int64_t image = 0; image < conv.batch; ++image) {
    for (int64_t row = 0; row < conv.rows.out; ++row) {
      ForEachTap(conv, image, row, 0, inner.begin, add_tap);
      ForEachTap(conv, image, row, inner.end, conv.cols.out, add_tap);
      if (inner.begin == inner.end) continue;
      const float* dy_row =
          dy +
          ((image * conv.rows.out + row) * conv.cols.out + inner.begin) * depth;
      const Taps rows = TapsInside(conv.rows, row);
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        for (int64_t c = 0; c < conv.cols.size;) {
          const bool many = c + kTaps <= conv.cols.size;
          const auto add =
              many ? &FilterGradientTaps<kTaps> : &FilterGradientTaps<1>;
          add(step, inner.end - inner.begin, depth,
              x + Place(conv, image, row, inner.begin, r, c), dy_row,
              dfilter + (r * conv.cols.size + c) * depth);
          c += many ? kTaps : 1;
        }
      }
    }
  }
}

}  // namespace

const DepthwiseCode kDepthwise = {&Forward, &InputGradient, &FilterGradient};

}  // namespace cpu_sim::CPU_SIM_LEVEL
