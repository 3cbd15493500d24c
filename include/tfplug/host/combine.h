// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_HOST_COMBINE_H_
#define TFPLUG_HOST_COMBINE_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "tfplug/ir/reduce_kind.h"
#include "tfplug/ir/scalar_code.h"

#pragma GCC visibility push(hidden)

// The loops of reductions. Floats are added in pieces, whose sums are added in
// double precision.
namespace tfplug::host {

template <class T>
using TotalOf = std::conditional_t<std::is_same_v<T, float>, double, T>;

// Values that are combined at the same time, so that loops are vectorized.
inline constexpr int64_t kLanes = 64;
// Values that are combined in the type T before they are combined with a total.
template <class T>
inline constexpr int64_t kPiece = std::is_same_v<T, float> ? 32 : 4096;

template <class T, class Combine>
void CombineRowsOf(int64_t rows, int64_t n, const T* x, int64_t row_stride,
                   TotalOf<T>* totals, Combine combine) {
  const int64_t fold = kLanes / std::max<int64_t>(n, 1);
  if (fold >= 4 && row_stride == n && rows >= 2 * fold) {
    // Several short rows are one.
    const int64_t width = fold * n, long_rows = rows / fold;
    TotalOf<T> sums[kLanes];
    for (int64_t i = 0; i < width; ++i) sums[i] = static_cast<TotalOf<T>>(x[i]);
    CombineRowsOf(long_rows - 1, width, x + width, width, sums, combine);
    for (int64_t k = 0; k < fold; ++k) {
      for (int64_t i = 0; i < n; ++i) {
        totals[i] = combine(totals[i], sums[k * n + i]);
      }
    }
    x += long_rows * width;
    rows -= long_rows * fold;
  }
  const auto columns = [&](int64_t first, auto width) {
    for (int64_t row = 0; row < rows; row += kPiece<T>) {
      const int64_t end = row + kPiece<T> < rows ? row + kPiece<T> : rows;
      const T* at = x + row * row_stride + first;
      T piece[kLanes];
      for (int64_t i = 0; i < width; ++i) piece[i] = at[i];
      for (int64_t r = row + 1; r < end; ++r) {
        at += row_stride;
        for (int64_t i = 0; i < width; ++i) piece[i] = combine(piece[i], at[i]);
      }
      for (int64_t i = 0; i < width; ++i) {
        totals[first + i] =
            combine(totals[first + i], static_cast<TotalOf<T>>(piece[i]));
      }
    }
  };
  int64_t first = 0;
  for (; first + kLanes <= n; first += kLanes) {
    columns(first, std::integral_constant<int64_t, kLanes>());
  }
  if (first + kLanes / 2 <= n) {
    columns(first, std::integral_constant<int64_t, kLanes / 2>());
    first += kLanes / 2;
  }
  if (first + kLanes / 4 <= n) {
    columns(first, std::integral_constant<int64_t, kLanes / 4>());
    first += kLanes / 4;
  }
  if (first < n) columns(first, n - first);
}

// Combines all of x.
template <class T, class Combine>
TotalOf<T> CombineAll(int64_t n, const T* x, TotalOf<T> total,
                      Combine combine) {
  while (n >= kLanes) {
    T lanes[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) lanes[i] = x[i];
    x += kLanes;
    n -= kLanes;
    for (int64_t step = 1; step < kPiece<T> && n >= kLanes; ++step) {
      for (int64_t i = 0; i < kLanes; ++i) lanes[i] = combine(lanes[i], x[i]);
      x += kLanes;
      n -= kLanes;
    }
    // Halves the number of lanes until few are left.
    for (int64_t width = kLanes / 2; width >= 8; width /= 2) {
      for (int64_t i = 0; i < width; ++i) {
        lanes[i] = combine(lanes[i], lanes[i + width]);
      }
    }
    for (int64_t i = 0; i < 8; ++i) {
      total = combine(total, static_cast<TotalOf<T>>(lanes[i]));
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    total = combine(total, static_cast<TotalOf<T>>(x[i]));
  }
  return total;
}

inline void HostCombineRows(int kind, int type, int64_t rows, int64_t n,
                            const void* x, int64_t row_stride, void* totals) {
  ir::VisitComputed(static_cast<DataType>(type), [&](auto tag) {
    using T = typename decltype(tag)::type;
    ir::VisitCombine<T>(static_cast<ReduceKind>(kind), [&](auto combine) {
      CombineRowsOf(rows, n, static_cast<const T*>(x), row_stride,
                    static_cast<TotalOf<T>*>(totals), combine);
    });
  });
}

inline void HostCombineEach(int kind, int type, int64_t rows, int64_t n,
                            const void* x, int64_t row_stride, void* totals) {
  ir::VisitComputed(static_cast<DataType>(type), [&](auto tag) {
    using T = typename decltype(tag)::type;
    TotalOf<T>* const all = static_cast<TotalOf<T>*>(totals);
    ir::VisitCombine<T>(static_cast<ReduceKind>(kind), [&](auto combine) {
      for (int64_t r = 0; r < rows; ++r) {
        all[r] = CombineAll(n, static_cast<const T*>(x) + r * row_stride,
                            all[r], combine);
      }
    });
  });
}

}  // namespace tfplug::host

#pragma GCC visibility pop

#endif  // TFPLUG_HOST_COMBINE_H_
