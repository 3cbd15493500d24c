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

// Sizes or strides, in elements, outermost first.
using Dims = absl::InlinedVector<int64_t, 6>;
using DimsView = absl::Span<const int64_t>;

inline int64_t ElementCount(DimsView shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

// The strides of a dense tensor.
Dims DenseStrides(DimsView shape);

// The strides with which a tensor of shape `from` is read as one of shape
// `to`: 0 where it repeats itself. INVALID_ARGUMENT when it cannot be.
absl::StatusOr<Dims> BroadcastStrides(DimsView from, DimsView to);

// The shape that two shapes broadcast to, as NumPy does it.
absl::StatusOr<Dims> BroadcastShape(DimsView a, DimsView b);

// A walk over a box of elements that several tensors lie in, each with strides
// of its own. Neighbouring dimensions that all tensors walk through in one go
// are merged, so a dense case has one dimension. Plain data: a kernel takes it
// along to the device.
template <size_t n>
struct Loop {
  static constexpr int kMaxRank = 8;

  int rank = 1;
  std::array<int64_t, kMaxRank> size = {1};
  std::array<std::array<int64_t, kMaxRank>, n> stride = {};

  // The innermost dimension: its size, and the stride of tensor `i` in it.
  int64_t row_size() const { return size[rank - 1]; }
  int64_t row_stride(size_t i) const { return stride[i][rank - 1]; }

  bool is_empty() const {
    return std::find(size.begin(), size.begin() + rank, 0) !=
           size.begin() + rank;
  }
};

// INVALID_ARGUMENT when more than kMaxRank dimensions are left after merging.
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
      return absl::InvalidArgumentError("the tensor has too many dimensions");
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

// The loop that fills tensor 0, dense and of `shape`, from the others, which
// are dense, of the shapes `inputs`, and broadcast to `shape`.
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

// The shape that all of `shapes` broadcast to, and the loop that fills a tensor
// of it from tensors of these.
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

// Calls row(offsets) for each row: for each tensor, where the row begins.
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
