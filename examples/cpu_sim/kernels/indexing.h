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

// For kernels that find slices of a tensor by numbers which lie on the device.
namespace cpu_sim {

// ---- On the device ---------------------------------------------------------

// Slice `at` of `size` from `x` to `y`; zeros if there is none of that number.
inline void CopySlice(char* y, const char* x, int64_t at, int64_t size,
                      int64_t slice_bytes) {
  if (at >= 0 && at < size) {
    memcpy(y, x + at * slice_bytes, slice_bytes);
  } else {
    memset(y, 0, slice_bytes);
  }
}

// Turns a slice's indices in the first `rank` dimensions of a tensor into its
// number there.
struct Coordinates {
  static constexpr int kMaxRank = 8;

  int rank = 0;
  int64_t size = 1;  // how many slices there are
  std::array<int64_t, kMaxRank> dims = {};

  // -1 if one is out of range.
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

// What indices of shape [..., rank] take of a tensor: `count` slices of
// `slice_size` elements, together of `shape`.
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
        ": their last dimension is how many of its dimensions they index, and "
        "at most " +
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
