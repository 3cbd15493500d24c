// SPDX-License-Identifier: Apache-2.0
#include <Eigen/Core>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/row_code.h"
#include "kernels/simd/code.h"

// Softmax and its losses, layer normalization and attention, row by row. There
// must be at least one class.
namespace cpu_sim::CPU_SIM_LEVEL {
namespace {

using Row = Eigen::Array<float, 1, Eigen::Dynamic>;
using RowMap = Eigen::Map<Row>;
using ConstRowMap = Eigen::Map<const Row>;

struct Normalization {
  float largest;
  float log_sum;  // log(sum(exp(x - largest)))
};

// y = softmax(x). The largest logit is subtracted first so that no exponential
// overflows, and added to nothing later, where it would hide a small log_sum.
Normalization SoftmaxRow(const ConstRowMap& x, RowMap y) {
  const float largest = x.maxCoeff();
  y = (x - largest).exp();
  const float sum = y.sum();
  y /= sum;
  return {largest, std::log(sum)};
}

void Softmax(const float* logits, float* y, int64_t rows, int64_t classes) {
  for (int64_t r = 0; r < rows; ++r) {
    SoftmaxRow(ConstRowMap(logits + r * classes, classes),
               RowMap(y + r * classes, classes));
  }
}

void LogSoftmax(const float* logits, float* y, int64_t rows, int64_t classes) {
  for (int64_t r = 0; r < rows; ++r) {
    const ConstRowMap x(logits + r * classes, classes);
    const float largest = x.maxCoeff();
    const float log_sum = std::log((x - largest).exp().sum());
    RowMap(y + r * classes, classes) = (x - largest) - log_sum;
  }
}

template <typename Label>
void SparseCrossEntropy(const float* logits, const Label* labels, float* loss,
                        float* backprop, int64_t rows, int64_t classes) {
  for (int64_t r = 0; r < rows; ++r) {
    const ConstRowMap x(logits + r * classes, classes);
    RowMap gradient(backprop + r * classes, classes);
    const bool valid = labels[r] >= 0 && labels[r] < classes;
    const float logit = valid ? x[labels[r]] : 0;  // backprop may alias logits
    const Normalization norm = SoftmaxRow(x, gradient);
    if (!valid) {
      loss[r] = std::numeric_limits<float>::quiet_NaN();
      gradient.setConstant(loss[r]);
      continue;
    }
    loss[r] = norm.log_sum - (logit - norm.largest);
    gradient[labels[r]] -= 1;
  }
}

void CrossEntropy(const float* logits, const float* labels, float* loss,
                  float* backprop, int64_t rows, int64_t classes) {
  for (int64_t r = 0; r < rows; ++r) {
    const ConstRowMap x(logits + r * classes, classes);
    const ConstRowMap label(labels + r * classes, classes);
    RowMap gradient(backprop + r * classes, classes);
    const Normalization norm = SoftmaxRow(x, gradient);
    loss[r] = (label == 0.f)
                  .select(0.f, label * (norm.log_sum - (x - norm.largest)))
                  .sum();
    gradient -= label;
  }
}

void Normalize(const float* x, const float* gamma, const float* beta, float* y,
               float* means, float* rstds, float epsilon, int64_t rows,
               int64_t depth) {
  const ConstRowMap scale(gamma, depth), offset(beta, depth);
  for (int64_t r = 0; r < rows; ++r) {
    const ConstRowMap row(x + r * depth, depth);
    const float mean = row.mean();
    const float rstd = 1 / std::sqrt((row - mean).square().mean() + epsilon);
    RowMap(y + r * depth, depth) = (row - mean) * (rstd * scale) + offset;
    means[r] = mean;
    rstds[r] = rstd;
  }
}

// Computes one query at a time.
void Attend(const AttentionSizes& a, int64_t begin, int64_t end, const float* q,
            const float* k, const float* v, const bool* mask, const float* bias,
            float* y, float* probabilities) {
  Row scores(a.keys);
  const auto at = [](const int64_t* strides, int64_t b, int64_t n, int64_t t) {
    return b * strides[0] + n * strides[1] + t * strides[2];
  };
  for (int64_t row = begin; row < end; ++row) {
    const int64_t t = row % a.queries, n = row / a.queries % a.heads,
                  b = row / a.queries / a.heads;
    const ConstRowMap query(q + at(a.q, b, n, t), a.size);
    for (int64_t s = 0; s < a.keys; ++s) {
      const ConstRowMap key(k + at(a.k, b, n, s), a.size);
      scores[s] = a.scale * (query * key).sum();
      if (a.has_mask && !mask[at(a.mask, b, n, t) + s * a.mask[3]]) {
        scores[s] = a.masked_score;
      }
      if (a.has_bias) scores[s] += bias[at(a.bias, b, n, t) + s * a.bias[3]];
    }
    SoftmaxRow(ConstRowMap(scores.data(), a.keys),
               RowMap(scores.data(), a.keys));
    if (a.has_probabilities) {
      RowMap(probabilities + row * a.keys, a.keys) = scores;
    }
    RowMap out(y + at(a.y, b, n, t), a.value_size);
    out.setZero();
    for (int64_t s = 0; s < a.keys; ++s) {
      out += scores[s] * ConstRowMap(v + at(a.v, b, n, s), a.value_size);
    }
  }
}

}  // namespace

extern const RowCode kRows;
const RowCode kRows = {&Softmax,
                       &LogSoftmax,
                       &CrossEntropy,
                       &SparseCrossEntropy<int32_t>,
                       &SparseCrossEntropy<int64_t>,
                       &Normalize,
                       &Attend};

}  // namespace cpu_sim::CPU_SIM_LEVEL
