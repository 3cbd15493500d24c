// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_REDUCTION_H_
#define CPU_SIM_KERNELS_REDUCTION_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/elementwise.h"
#include "kernels/loop.h"
#include "kernels/simd.h"

// Reductions on the device. A reducer has an initial value and two operations:
// OfRow reduces a row to one value, Combine merges values elementwise.
namespace cpu_sim {

template <typename T>
struct SumReducer {
  static T Initial() { return T(0); }
  template <typename Row>
  static T OfRow(const Row& row) {
    return row.sum();
  }
  template <typename A, typename B>
  static auto Combine(const A& a, const B& b) {
    return a + b;
  }
};

template <typename T>
struct ProdReducer {
  static T Initial() { return T(1); }
  template <typename Row>
  static T OfRow(const Row& row) {
    return row.prod();
  }
  template <typename A, typename B>
  static auto Combine(const A& a, const B& b) {
    return a * b;
  }
};

template <typename T>
struct MaxReducer {
  static T Initial() {
    return std::numeric_limits<T>::has_infinity
               ? -std::numeric_limits<T>::infinity()
               : std::numeric_limits<T>::lowest();
  }
  template <typename Row>
  static T OfRow(const Row& row) {
    return row.template maxCoeff<Eigen::PropagateNaN>();
  }
  template <typename A, typename B>
  static auto Combine(const A& a, const B& b) {
    return (a >= b || a != a).select(a, b);
  }
};

template <typename T>
struct MinReducer {
  static T Initial() {
    return std::numeric_limits<T>::has_infinity
               ? std::numeric_limits<T>::infinity()
               : std::numeric_limits<T>::max();
  }
  template <typename Row>
  static T OfRow(const Row& row) {
    return row.template minCoeff<Eigen::PropagateNaN>();
  }
  template <typename A, typename B>
  static auto Combine(const A& a, const B& b) {
    return (a <= b || a != a).select(a, b);
  }
};

// The loop covers the input, its tensor 1. Tensor 0, the output of `size`
// elements, has stride 0 in each reduced dimension.
template <typename Reducer, typename T>
void Reduce(const Loop<2>& loop, T* y, int64_t size, const T* x) {
  std::fill_n(y, size, Reducer::Initial());
  const int64_t row_size = loop.row_size();
  const bool row_to_one = loop.row_stride(0) == 0;
  ForEachRow(loop, [&](const std::array<int64_t, 2>& at) {
    const ConstRowMap<T> in(x + at[1], row_size);
    if (row_to_one) {
      RowMap<T> out(y + at[0], 1);
      out = Reducer::Combine(out, Row<T>::Constant(1, Reducer::OfRow(in)));
    } else {
      RowMap<T> out(y + at[0], row_size);
      out = Reducer::Combine(out, in);
    }
  });
}

// Sums floats, with a loop as in Reduce, the vector instructions of this
// machine, and an order that keeps the rounding error small.
inline void SumFloats(const Loop<2>& loop, float* y, int64_t size,
                      const float* x) {
  std::fill_n(y, size, 0.0f);
  const int64_t row_size = loop.row_size();
  if (loop.row_stride(0) == 0) {
    ForEachRow(loop, [&](const auto& at) {
      y[at[0]] += Simd().sum(row_size, x + at[1]);
    });
    return;
  }
  // Sums all contiguous rows at once.
  Loop<2> outer = loop;
  int64_t rows = 1;
  const int last = loop.rank - 1;
  if (last > 0 && loop.stride[0][last - 1] == 0 &&
      loop.stride[1][last - 1] == row_size) {
    rows = loop.size[last - 1];
    outer.rank = last;
    outer.size[last - 1] = row_size;
    for (auto& stride : outer.stride) stride[last - 1] = stride[last];
  }
  std::vector<float> sum(static_cast<size_t>(row_size));
  ForEachRow(loop.is_empty() ? loop : outer, [&](const auto& at) {
    float* to = y + at[0];
    Simd().sum_rows(rows, row_size, x + at[1], sum.data());
    Simd().elementwise.binary(Binary::kAdd, row_size, to, 1, sum.data(), 1, to);
  });
}

template <typename T>
void ReduceSum(const Loop<2>& loop, T* y, int64_t size, const T* x) {
  if constexpr (std::is_same_v<T, float>) {
    SumFloats(loop, y, size, x);
  } else {
    Reduce<SumReducer<T>>(loop, y, size, x);
  }
}

// Computes means, with a loop as in Reduce.
template <typename T>
void ReduceMean(const Loop<2>& loop, T* y, int64_t size, const T* x) {
  ReduceSum(loop, y, size, x);
  int64_t input_size = 1;
  for (int d = 0; d < loop.rank; ++d) input_size *= loop.size[d];
  // The mean of no elements is NaN, as in TensorFlow.
  RowMap<T>(y, size) /= T(input_size) / T(size);
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_REDUCTION_H_
