// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_LOOP_H_
#define CPU_SIM_KERNELS_LOOP_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace cpu_sim {

// Sizes or strides in elements, outermost first.
using Dims = absl::InlinedVector<int64_t, 6>;
using DimsView = absl::Span<const int64_t>;

inline int64_t ElementCount(DimsView shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

// Returns the strides of a dense tensor.
Dims DenseStrides(DimsView shape);

// Returns the strides that broadcast a tensor of shape `from` to shape `to`: 0
// in broadcast dimensions. INVALID_ARGUMENT if the shapes do not match.
absl::StatusOr<Dims> BroadcastStrides(DimsView from, DimsView to);

// Returns the shape to which two shapes broadcast, by NumPy's rules.
absl::StatusOr<Dims> BroadcastShape(DimsView a, DimsView b);

// A loop over a box of elements of several tensors, each with its own strides.
// Adjacent dimensions that are contiguous in all tensors are merged, so a dense
// loop has one dimension. Plain data, which kernels copy to the device.
template <size_t n>
struct Loop {
  static constexpr int kMaxRank = 8;

  int rank = 1;
  std::array<int64_t, kMaxRank> size = {1};
  std::array<std::array<int64_t, kMaxRank>, n> stride = {};

  // The size of the innermost dimension, and the stride of tensor `i` in it.
  int64_t row_size() const { return size[rank - 1]; }
  int64_t row_stride(size_t i) const { return stride[i][rank - 1]; }

  bool is_empty() const {
    return std::find(size.begin(), size.begin() + rank, 0) !=
           size.begin() + rank;
  }
};

// Returns the loop over `shape` with these strides. INVALID_ARGUMENT if more
// than kMaxRank dimensions remain after merging.
template <size_t n>
absl::StatusOr<Loop<n>> MakeLoop(DimsView shape,
                                 const std::array<Dims, n>& strides) {
  Loop<n> loop;
  loop.rank = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    const int last = loop.rank - 1;
    bool merge = last >= 0;
    for (size_t i = 0; merge && i < n; ++i) {
      merge = loop.stride[i][last] == strides[i][d] * shape[d];
    }
    if (!merge && loop.rank == Loop<n>::kMaxRank) {
      return absl::InvalidArgumentError(
          "the tensor has too many dimensions that cannot be merged");
    }
    const int to = merge ? last : loop.rank++;
    loop.size[to] = (merge ? loop.size[to] : 1) * shape[d];
    for (size_t i = 0; i < n; ++i) loop.stride[i][to] = strides[i][d];
  }
  if (loop.rank == 0) {  // one element
    loop.rank = 1;
    loop.size[0] = 1;
  }
  return loop;
}

// Returns the loop that fills the dense tensor 0 of `shape` from the other
// tensors, which are dense, have the shapes `inputs`, and are broadcast.
template <size_t n>
absl::StatusOr<Loop<n>> MakeBroadcastLoop(
    DimsView shape, const std::array<DimsView, n - 1>& inputs) {
  std::array<Dims, n> strides = {DenseStrides(shape)};
  for (size_t i = 1; i < n; ++i) {
    absl::StatusOr<Dims> of_input = BroadcastStrides(inputs[i - 1], shape);
    if (!of_input.ok()) return of_input.status();
    strides[i] = *std::move(of_input);
  }
  return MakeLoop<n>(shape, strides);
}

// The shape to which n tensors broadcast, and the loop that fills a tensor of
// that shape from them.
template <size_t n>
struct Broadcast {
  Dims shape;
  Loop<n + 1> loop;
};
template <size_t n>
absl::StatusOr<Broadcast<n>> BroadcastAll(
    const std::array<DimsView, n>& shapes) {
  Broadcast<n> all;
  for (DimsView shape : shapes) {
    absl::StatusOr<Dims> both = BroadcastShape(all.shape, shape);
    if (!both.ok()) return both.status();
    all.shape = *std::move(both);
  }
  absl::StatusOr<Loop<n + 1>> loop =
      MakeBroadcastLoop<n + 1>(all.shape, shapes);
  if (!loop.ok()) return loop.status();
  all.loop = *loop;
  return all;
}

// Calls row(offsets) for each row, with the offset of the row in each tensor.
template <size_t n, typename Row>
void ForEachRow(const Loop<n>& loop, Row row) {
  const int outer = loop.rank - 1;
  if (loop.is_empty()) return;
  std::array<int64_t, Loop<n>::kMaxRank> index = {};
  std::array<int64_t, n> offset = {};
  while (true) {
    row(offset);
    int d = outer - 1;
    for (; d >= 0; --d) {
      for (size_t i = 0; i < n; ++i) offset[i] += loop.stride[i][d];
      if (++index[d] < loop.size[d]) break;
      for (size_t i = 0; i < n; ++i) {
        offset[i] -= loop.stride[i][d] * loop.size[d];
      }
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_LOOP_H_
