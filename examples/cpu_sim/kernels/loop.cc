// SPDX-License-Identifier: Apache-2.0
#include "kernels/loop.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace cpu_sim {
namespace {

absl::Status Incompatible(DimsView a, DimsView b) {
  return absl::InvalidArgumentError(
      absl::StrCat("Incompatible shapes: [", absl::StrJoin(a, ","), "] vs. [",
                   absl::StrJoin(b, ","), "]"));
}

// Returns dimension `d` of a shape padded with leading 1s to `rank`.
int64_t SizeOf(DimsView shape, size_t d, size_t rank) {
  const size_t missing = rank - shape.size();
  return d < missing ? 1 : shape[d - missing];
}

}  // namespace

Dims DenseStrides(DimsView shape) {
  Dims strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

absl::StatusOr<Dims> BroadcastStrides(DimsView from, DimsView to) {
  if (from.size() > to.size()) return Incompatible(from, to);
  Dims strides(to.size());
  int64_t stride = 1;
  for (size_t d = to.size(); d-- > 0;) {
    const int64_t size = SizeOf(from, d, to.size());
    if (size != to[d] && size != 1) return Incompatible(from, to);
    strides[d] = size == 1 ? 0 : stride;
    stride *= size;
  }
  return strides;
}

absl::StatusOr<Dims> BroadcastShape(DimsView a, DimsView b) {
  Dims shape(std::max(a.size(), b.size()));
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t in_a = SizeOf(a, d, shape.size());
    const int64_t in_b = SizeOf(b, d, shape.size());
    if (in_a != in_b && in_a != 1 && in_b != 1) return Incompatible(a, b);
    shape[d] = in_a == 1 ? in_b : in_a;
  }
  return shape;
}

}  // namespace cpu_sim
