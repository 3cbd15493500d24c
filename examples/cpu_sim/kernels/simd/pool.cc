// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <limits>

#include "kernels/simd/code.h"

namespace cpu_sim::CPU_SIM_LEVEL {
namespace {

// Calls use(offset in y, offset in x) for each tap of each window that is
// inside the image, and begin(offset in y, number of taps) before each window.
template <typename Begin, typename Use>
void ForEachTap(const Pool2D& pool, Begin begin, Use use) {
  const Window &rows = pool.rows, &cols = pool.cols;
  int64_t y = 0;
  for (int64_t image = 0; image < pool.batch; ++image) {
    for (int64_t row = 0; row < rows.out; ++row) {
      const Taps row_taps = TapsInside(rows, row);
      for (int64_t col = 0; col < cols.out; ++col, y += pool.depth) {
        const Taps col_taps = TapsInside(cols, col);
        begin(y, (row_taps.end - row_taps.begin) *
                     (col_taps.end - col_taps.begin));
        for (int64_t r = row_taps.begin; r < row_taps.end; ++r) {
          const int64_t x_row =
              (image * rows.in + TapPlace(rows, row, r)) * cols.in;
          for (int64_t c = col_taps.begin; c < col_taps.end; ++c) {
            use(y, (x_row + TapPlace(cols, col, c)) * pool.depth);
          }
        }
      }
    }
  }
}

int64_t InputSize(const Pool2D& pool) {
  return pool.batch * pool.rows.in * pool.cols.in * pool.depth;
}

// NaN counts as larger than any number.
void Max(const Pool2D& pool, const float* x, float* y) {
  const int64_t depth = pool.depth;
  ForEachTap(
      pool,
      [&](int64_t to, int64_t) {
        std::fill_n(y + to, depth, std::numeric_limits<float>::lowest());
      },
      [&](int64_t to, int64_t from) {
        const float* __restrict in = x + from;
        float* __restrict out = y + to;
        for (int64_t c = 0; c < depth; ++c) {
          out[c] = in[c] > out[c] || in[c] != in[c] ? in[c] : out[c];
        }
      });
}

void MaxGradient(const Pool2D& pool, const float* x, const float* y,
                 const float* dy, float* dx, float* workspace) {
  const int64_t depth = pool.depth;
  std::memset(dx, 0, InputSize(pool) * sizeof(float));
  ForEachTap(
      pool,
      [&](int64_t from, int64_t) { std::copy_n(dy + from, depth, workspace); },
      [&](int64_t from, int64_t to) {
        const float* __restrict in = x + to;
        const float* __restrict largest = y + from;
        float* __restrict out = dx + to;
        float* __restrict rest = workspace;  // not yet assigned
        for (int64_t c = 0; c < depth; ++c) {
          const bool gets = in[c] == largest[c] || in[c] != in[c];
          out[c] += gets ? rest[c] : 0;
          rest[c] = gets ? 0 : rest[c];
        }
      });
}

void Average(const Pool2D& pool, const float* x, float* y) {
  const int64_t depth = pool.depth;
  int64_t left = 0, count = 0;  // taps of this window
  const auto divide = [&](float* __restrict out) {
    for (int64_t c = 0; c < depth; ++c) out[c] /= static_cast<float>(count);
  };
  ForEachTap(
      pool,
      [&](int64_t to, int64_t taps) {
        std::memset(y + to, 0, depth * sizeof(float));
        left = count = taps;
        if (count == 0) divide(y + to);
      },
      [&](int64_t to, int64_t from) {
        const float* __restrict in = x + from;
        float* __restrict out = y + to;
        for (int64_t c = 0; c < depth; ++c) out[c] += in[c];
        if (--left == 0) divide(out);
      });
}

void AverageGradient(const Pool2D& pool, const float* dy, float* dx) {
  const int64_t depth = pool.depth;
  float share = 0;
  std::memset(dx, 0, InputSize(pool) * sizeof(float));
  ForEachTap(
      pool,
      [&](int64_t, int64_t taps) { share = 1 / static_cast<float>(taps); },
      [&](int64_t from, int64_t to) {
        const float* __restrict in = dy + from;
        float* __restrict out = dx + to;
        for (int64_t c = 0; c < depth; ++c) out[c] += in[c] * share;
      });
}

}  // namespace

const PoolCode kPool = {&Max, &MaxGradient, &Average, &AverageGradient};

}  // namespace cpu_sim::CPU_SIM_LEVEL
