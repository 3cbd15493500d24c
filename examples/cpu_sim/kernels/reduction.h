// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_REDUCTION_H_
#define CPU_SIM_KERNELS_REDUCTION_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/elementwise.h"
#include "kernels/loop.h"

// What reductions do on the device. A reducer has the value of nothing at all,
// and two ways to take in more: a whole row to one value, or value by value.
namespace cpu_sim {

template <typename T>
struct SumReducer {
  static T Nothing() { return T(0); }
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
  static T Nothing() { return T(1); }
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
  static T Nothing() {
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
  static T Nothing() {
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

// The loop goes over the input, its tensor 1; tensor 0, the output of `size`
// elements, has stride 0 in each dimension that is reduced.
template <typename Reducer, typename T>
void Reduce(const Loop<2>& loop, T* y, int64_t size, const T* x) {
  std::fill_n(y, size, Reducer::Nothing());
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

// The same loop: the sum divided by the number of elements that went into it.
template <typename T>
void ReduceMean(const Loop<2>& loop, T* y, int64_t size, const T* x) {
  Reduce<SumReducer<T>>(loop, y, size, x);
  int64_t input_size = 1;
  for (int d = 0; d < loop.rank; ++d) input_size *= loop.size[d];
  // Of no elements it is NaN, as in core.
  RowMap<T>(y, size) *= T(size) / T(input_size);
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_REDUCTION_H_
