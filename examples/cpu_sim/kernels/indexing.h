// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_INDEXING_H_
#define CPU_SIM_KERNELS_INDEXING_H_

#include <tfplug/base/shape.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Helpers for kernels that select slices of a tensor by indices on the device.
namespace cpu_sim {

// ---- On the device ---------------------------------------------------------

// Copies slice `at` of `size` slices from `x` to `y`, or zeros if `at` is out
// of range.
inline void CopySlice(char* y, const char* x, int64_t at, int64_t size,
                      int64_t slice_bytes) {
  if (at >= 0 && at < size) {
    memcpy(y, x + at * slice_bytes, slice_bytes);
  } else {
    memset(y, 0, slice_bytes);
  }
}

// Converts indices in the first `rank` dimensions of a tensor to the index of a
// slice.
struct Coordinates {
  static constexpr int kMaxRank = 8;

  int rank = 0;
  int64_t size = 1;  // number of slices
  std::array<int64_t, kMaxRank> dims = {};

  // Returns -1 if an index is out of range.
  template <typename Index>
  int64_t Find(const Index* indices) const {
    int64_t at = 0;
    for (int d = 0; d < rank; ++d) {
      if (indices[d] < 0 || indices[d] >= dims[d]) return -1;
      at = at * dims[d] + indices[d];
    }
    return at;
  }
};

// ---- On the host -----------------------------------------------------------

// The slices that indices of shape [..., rank] select: `count` slices of
// `slice_size` elements, which together have `shape`.
struct IndexedSlices {
  Coordinates coordinates;
  int64_t count = 1;
  int64_t slice_size = 1;
  tfplug::Shape shape;
};

inline absl::StatusOr<IndexedSlices> MakeIndexedSlices(
    const tfplug::Shape& tensor, const tfplug::Shape& indices) {
  const int last = indices.rank() - 1;
  const int64_t rank = last < 0 ? -1 : indices.dim(last);
  if (rank < 0 || rank > tensor.rank() || rank > Coordinates::kMaxRank) {
    return absl::InvalidArgumentError(
        "indices of shape " + indices.ToString() +
        " do not fit a tensor of shape " + tensor.ToString() +
        ": the size of their last dimension is the number of dimensions that "
        "they index, at most " +
        std::to_string(Coordinates::kMaxRank));
  }
  IndexedSlices slices;
  slices.coordinates.rank = static_cast<int>(rank);
  for (int d = 0; d < last; ++d) {
    slices.count *= indices.dim(d);
    slices.shape.add_dim(indices.dim(d));
  }
  for (int d = 0; d < tensor.rank(); ++d) {
    if (d < rank) {
      slices.coordinates.dims[static_cast<size_t>(d)] = tensor.dim(d);
      slices.coordinates.size *= tensor.dim(d);
    } else {
      slices.slice_size *= tensor.dim(d);
      slices.shape.add_dim(tensor.dim(d));
    }
  }
  return slices;
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_INDEXING_H_
