// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_RANDOM_VIEWS_H_
#define TFPLUG_TESTING_INTERNAL_RANDOM_VIEWS_H_

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "tfplug/primitives/reference_backend.h"

#pragma GCC visibility push(hidden)

// Arrays with random dimensions, strides and values, and their elements one by
// one, for comparison with the primitives.
namespace tfplug::testing {

using Random = std::mt19937;
using Dims = std::vector<int64_t>;

inline int64_t Below(Random& random, int64_t n) {
  return std::uniform_int_distribution<int64_t>(0, n - 1)(random);
}

inline Dims RandomDims(Random& random, int max_rank) {
  Dims dims(static_cast<size_t>(Below(random, max_rank + 1)));
  for (int64_t& size : dims) size = 1 + Below(random, dims.size() > 4 ? 2 : 4);
  if (!dims.empty() && Below(random, 4) == 0) dims.back() = 600;
  return dims;
}

// Calls visit(index) for each index of `dims` in row-major order.
template <class Visit>
void ForEachIndex(const Dims& dims, Visit visit) {
  Dims index(dims.size());
  for (int64_t size : dims) {
    if (size == 0) return;
  }
  while (true) {
    visit(index);
    size_t d = dims.size();
    while (d > 0 && ++index[d - 1] == dims[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

inline int64_t OffsetOf(const Operand& view, const Dims& index) {
  int64_t offset = 0;
  for (int d = 0; d < view.rank; ++d) {
    offset += index[static_cast<size_t>(d)] * view.stride(d);
  }
  return offset;
}

// A view of memory that does not exist yet.
struct Layout {
  Operand view;       // without an address
  int64_t first = 0;  // the offset of element (0, 0, ...)
  int64_t size = 1;   // of the memory, in elements
};

// Returns a random view. Strides are permuted, have gaps and may be negative;
// with `may_repeat`, some are 0, and elements may overlap.
inline Layout RandomLayout(Random& random, DataType type, const Dims& dims,
                           bool may_repeat) {
  Layout layout;
  layout.view.type = type;
  std::vector<size_t> order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  if (Below(random, 2) == 0) std::shuffle(order.begin(), order.end(), random);
  for (int64_t size : dims) layout.view.AddDim(size, 0);
  for (size_t k = dims.size(); k-- > 0;) {
    const int d = static_cast<int>(order[k]);
    if (may_repeat && Below(random, 3) == 0) continue;
    const bool overlaps = may_repeat && Below(random, 6) == 0;
    const int64_t stride =
        overlaps ? 1 + Below(random, layout.size) : layout.size;
    const int64_t steps = std::max<int64_t>(layout.view.dim(d) - 1, 0);
    const bool is_reversed = Below(random, 4) == 0;
    layout.view.stride(d) = is_reversed ? -stride : stride;
    if (is_reversed) layout.first += stride * steps;
    layout.size += stride * steps;
    if (Below(random, 5) == 0) layout.size += 1;
  }
  return layout;
}

// Memory with a random view of it.
template <class T>
class Array {
 public:
  Array(Random& random, const Dims& dims, bool may_repeat = false) {
    const Layout layout =
        RandomLayout(random, DataTypeOf<T>(), dims, may_repeat);
    view_ = layout.view;
    memory_.resize(static_cast<size_t>(layout.size));
    view_.data = memory_.data();
    view_.Advance(layout.first);
  }

  template <class Make>
  void Fill(Make make) {
    for (Stored& stored : memory_) stored.value = make();
  }

  const Operand& view() const { return view_; }
  T& at(const Dims& index) const {
    return *(static_cast<T*>(view_.data) + OffsetOf(view_, index));
  }

 private:
  struct Stored {  // std::vector<bool> has no elements
    T value = T();
  };
  std::vector<Stored> memory_;
  Operand view_;
};

// A launcher of the reference primitives.
struct Reference {
  struct Stream {};
  ReferenceBackend<Stream> backend;
  Stream stream;
  HostScratch scratch;
  Launcher launcher = MakeLauncher(backend, stream, scratch);
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_RANDOM_VIEWS_H_
