// SPDX-License-Identifier: Apache-2.0
#include <Eigen/Core>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/row_code.h"
#include "kernels/simd/code.h"

// Softmax, its losses and layer normalization, row by row. There must be at least
// one class.
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
  ClearTiny(y.size(), y.data());
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
