// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_SOFTMAX_H_
#define CPU_SIM_KERNELS_SOFTMAX_H_

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/rows.h"

// Softmax and its losses on the device, row by row. The largest logit is
// subtracted first so that no exponential overflows. There must be at least one
// class.
namespace cpu_sim {

// y = softmax(x); returns log(sum(exp(x))).
template <typename T, typename X>
T SoftmaxRow(const X& x, RowMap<T> y) {
  const T largest = x.maxCoeff();
  y = (x - largest).exp();
  const T sum = y.sum();
  y /= sum;
  return largest + std::log(sum);
}

template <typename T>
void Softmax(const T* logits, T* y, int64_t rows, int64_t classes) {
  for (int64_t r = 0; r < rows; ++r) {
    SoftmaxRow<T>(ConstRowMap<T>(logits + r * classes, classes),
                  RowMap<T>(y + r * classes, classes));
  }
}

template <typename T>
void LogSoftmax(const T* logits, T* y, int64_t rows, int64_t classes) {
  for (int64_t r = 0; r < rows; ++r) {
    const ConstRowMap<T> x(logits + r * classes, classes);
    const T largest = x.maxCoeff();
    const T log_sum = largest + std::log((x - largest).exp().sum());
    RowMap<T>(y + r * classes, classes) = x - log_sum;
  }
}

// loss: a value per row; backprop: d(loss)/d(logits). A label out of range
// gives NaN, because a device cannot raise an error on the host.
template <typename T, typename Label>
void SparseCrossEntropy(const T* logits, const Label* labels, T* loss,
                        T* backprop, int64_t rows, int64_t classes) {
  for (int64_t r = 0; r < rows; ++r) {
    const ConstRowMap<T> x(logits + r * classes, classes);
    RowMap<T> gradient(backprop + r * classes, classes);
    const bool valid = labels[r] >= 0 && labels[r] < classes;
    const T logit = valid ? x[labels[r]] : T(0);  // backprop may alias logits
    const T log_sum = SoftmaxRow<T>(x, gradient);
    if (!valid) {
      loss[r] = std::numeric_limits<T>::quiet_NaN();
      gradient.setConstant(loss[r]);
      continue;
    }
    loss[r] = log_sum - logit;
    gradient[labels[r]] -= T(1);
  }
}

// Like SparseCrossEntropy, but each label is a distribution over the classes.
template <typename T>
void CrossEntropy(const T* logits, const T* labels, T* loss, T* backprop,
                  int64_t rows, int64_t classes) {
  for (int64_t r = 0; r < rows; ++r) {
    const ConstRowMap<T> x(logits + r * classes, classes);
    const ConstRowMap<T> label(labels + r * classes, classes);
    RowMap<T> gradient(backprop + r * classes, classes);
    const T log_sum = SoftmaxRow<T>(x, gradient);
    loss[r] = (label == T(0)).select(T(0), label * (log_sum - x)).sum();
    gradient -= label;
  }
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_SOFTMAX_H_
