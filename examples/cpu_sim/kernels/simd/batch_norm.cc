// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/parallel.h"
#include "kernels/simd/code.h"

namespace cpu_sim::CPU_SIM_LEVEL {
namespace {

// The numbers of channels and rows processed at once.
constexpr int64_t kChannels = 256;
constexpr int64_t kRows = 64;

// Computes `count` sums over all rows. add(offset in x, channels, first
// channel, partial) adds the terms of a row to partial[0], ... Summing a few
// rows in float and these sums in double preserves small terms.
template <int count, typename Add>
void AddUp(const BatchNorm& norm, float* const (&sums)[count], Add add) {
  constexpr int64_t kPieces = 16;
  double totals[kPieces][count][kChannels];
  for (int64_t first = 0; first < norm.depth; first += kChannels) {
    const int64_t channels = std::min(kChannels, norm.depth - first);
    const int64_t rows = std::max(PieceOf(count * channels),
                                  (norm.rows + kPieces - 1) / kPieces);
    ForEachPiece(norm.rows, rows, [&](int64_t begin, int64_t end, int64_t) {
      double(&total)[count][kChannels] = totals[begin / rows];
      float partial[count][kChannels];
      std::memset(total, 0, sizeof(total));
      while (begin < end) {
        const int64_t next = std::min(begin + kRows, end);
        for (float(&part)[kChannels] : partial) {
          std::fill_n(part, channels, 0.0f);
        }
        for (; begin < next; ++begin) {
          add(begin * norm.depth + first, channels, first, partial);
        }
        for (int i = 0; i < count; ++i) {
          for (int64_t c = 0; c < channels; ++c) total[i][c] += partial[i][c];
        }
      }
    });
    for (int i = 0; i < count; ++i) {
      for (int64_t c = 0; c < channels; ++c) {
        double total = 0;
        for (int64_t piece = 0; piece * rows < norm.rows; ++piece) {
          total += totals[piece][i][c];
        }
        sums[i][first + c] = static_cast<float>(total);
      }
    }
  }
}

// Calls use(row) for all rows, of which it uses `channels` elements.
template <typename Use>
void ForEachRow(const BatchNorm& norm, int64_t channels, Use use) {
  ForEachPiece(norm.rows, PieceOf(channels),
               [&](int64_t begin, int64_t end, int64_t) {
                 for (int64_t row = begin; row < end; ++row) use(row);
               });
}

void Scale(int64_t depth, float factor, float* __restrict vector) {
  for (int64_t c = 0; c < depth; ++c) vector[c] *= factor;
}

void Sum(const BatchNorm& norm, const float* x, float* sum) {
  AddUp<1>(norm, {sum}, [x](int64_t at, int64_t n, int64_t, auto& partial) {
    const float* __restrict in = x + at;
    for (int64_t c = 0; c < n; ++c) partial[0][c] += in[c];
  });
}

void Variance(const BatchNorm& norm, const float* x, const float* mean,
              float* variance) {
  AddUp<1>(norm, {variance},
           [=](int64_t at, int64_t n, int64_t first, auto& partial) {
             const float* __restrict in = x + at;
             const float* __restrict middle = mean + first;
             for (int64_t c = 0; c < n; ++c) {
               const float distance = in[c] - middle[c];
               partial[0][c] += distance * distance;
             }
           });
  Scale(norm.depth, 1 / static_cast<float>(norm.rows), variance);
}

void Inference(const BatchNorm& norm, const float* x, const float* scale,
               const float* offset, const float* mean, const float* variance,
               float* y) {
  float factor[kChannels];
  for (int64_t first = 0; first < norm.depth; first += kChannels) {
    const int64_t channels = std::min(kChannels, norm.depth - first);
    for (int64_t c = 0; c < channels; ++c) {
      factor[c] =
          scale[first + c] / std::sqrt(variance[first + c] + norm.epsilon);
    }
    const float* __restrict middle = mean + first;
    const float* __restrict shift = offset + first;
    ForEachRow(norm, channels, [&](int64_t row) {
      const float* __restrict in = x + row * norm.depth + first;
      float* __restrict out = y + row * norm.depth + first;
      for (int64_t c = 0; c < channels; ++c) {
        out[c] = (in[c] - middle[c]) * factor[c] + shift[c];
      }
    });
  }
}

// next = moving + average_factor * (batch * correction - moving)
void Move(const BatchNorm& norm, float correction, const float* batch,
          const float* moving, float* next) {
  const float share = norm.average_factor;
  for (int64_t c = 0; c < norm.depth; ++c) {
    const float value = batch[c] * correction;
    next[c] = share == 1 ? value : (1 - share) * moving[c] + share * value;
  }
}

void Training(const BatchNorm& norm, const float* x, const float* scale,
              const float* offset, const float* moving_mean,
              const float* moving_variance, float* y, float* next_mean,
              float* next_variance, float* mean, float* variance) {
  if (norm.rows == 0) {  // the mean of no rows is NaN
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (float* vector : {next_mean, next_variance, mean, variance}) {
      std::fill_n(vector, norm.depth, nan);
    }
    return;
  }
  Sum(norm, x, mean);
  Scale(norm.depth, 1 / static_cast<float>(norm.rows), mean);
  Variance(norm, x, mean, variance);
  Inference(norm, x, scale, offset, mean, variance, y);
  const auto rows = static_cast<float>(norm.rows);
  Move(norm, 1, mean, moving_mean, next_mean);
  Move(norm, norm.rows > 1 ? rows / (rows - 1) : 1, variance, moving_variance,
       next_variance);
}

// doffset = sum(dy); dscale = sum(dy * (x - mean)), before scaling.
void GradientSums(const BatchNorm& norm, const float* dy, const float* x,
                  const float* mean, float* dscale, float* doffset) {
  AddUp<2>(norm, {doffset, dscale},
           [=](int64_t at, int64_t n, int64_t first, auto& partial) {
             const float* __restrict in = x + at;
             const float* __restrict gradient = dy + at;
             const float* __restrict middle = mean + first;
             for (int64_t c = 0; c < n; ++c) {
               partial[0][c] += gradient[c];
               partial[1][c] += gradient[c] * (in[c] - middle[c]);
             }
           });
}

// 1 / the standard deviation of a channel.
float Inverse(const BatchNorm& norm, float variance) {
  return 1 / std::sqrt(variance + norm.epsilon);
}

void TrainingGradient(const BatchNorm& norm, const float* dy, const float* x,
                      const float* scale, const float* mean,
                      const float* variance, float* dx, float* dscale,
                      float* doffset) {
  GradientSums(norm, dy, x, mean, dscale, doffset);
  if (norm.rows == 0) return;
  // dx = factor * (dy - mean of dy - the term from the variance)
  float factor[kChannels], share[kChannels], shift[kChannels];
  const auto rows = static_cast<float>(norm.rows);
  for (int64_t first = 0; first < norm.depth; first += kChannels) {
    const int64_t channels = std::min(kChannels, norm.depth - first);
    for (int64_t c = 0; c < channels; ++c) {
      const float inverse = Inverse(norm, variance[first + c]);
      factor[c] = scale[first + c] * inverse;
      share[c] = factor[c] * inverse * inverse * (dscale[first + c] / rows);
      shift[c] = factor[c] * (doffset[first + c] / rows);
      dscale[first + c] *= inverse;
    }
    const float* __restrict middle = mean + first;
    ForEachRow(norm, channels, [&](int64_t row) {
      const int64_t at = row * norm.depth + first;
      const float* __restrict gradient = dy + at;
      const float* __restrict in = x + at;
      float* __restrict out = dx + at;
      for (int64_t c = 0; c < channels; ++c) {
        out[c] =
            gradient[c] * factor[c] - shift[c] - (in[c] - middle[c]) * share[c];
      }
    });
  }
}

void InferenceGradient(const BatchNorm& norm, const float* dy, const float* x,
                       const float* scale, const float* mean,
                       const float* variance, float* dx, float* dscale,
                       float* doffset) {
  GradientSums(norm, dy, x, mean, dscale, doffset);
  if (norm.rows == 0) return;
  float factor[kChannels];
  for (int64_t first = 0; first < norm.depth; first += kChannels) {
    const int64_t channels = std::min(kChannels, norm.depth - first);
    for (int64_t c = 0; c < channels; ++c) {
      const float inverse = Inverse(norm, variance[first + c]);
      factor[c] = scale[first + c] * inverse;
      dscale[first + c] *= inverse;
    }
    ForEachRow(norm, channels, [&](int64_t row) {
      const float* __restrict gradient = dy + row * norm.depth + first;
      float* __restrict out = dx + row * norm.depth + first;
      for (int64_t c = 0; c < channels; ++c) out[c] = gradient[c] * factor[c];
    });
  }
}

}  // namespace

const BatchNormCode kBatchNorm = {&Training, &Inference, &TrainingGradient,
                                  &InferenceGradient};

}  // namespace cpu_sim::CPU_SIM_LEVEL
