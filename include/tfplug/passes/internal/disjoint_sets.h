// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_DISJOINT_SETS_H_
#define TFPLUG_PASSES_INTERNAL_DISJOINT_SETS_H_

#include <cstddef>
#include <numeric>
#include <vector>

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// Sets of the numbers below `size`, at first one for each number.
class DisjointSets {
 public:
  explicit DisjointSets(size_t size) : parents_(size) {
    std::iota(parents_.begin(), parents_.end(), size_t{0});
  }

  // Returns the number that stands for the set of `i`.
  size_t RootOf(size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }
  // Joins two sets. The root is that of `to`.
  void Join(size_t from, size_t to) { parents_[RootOf(from)] = RootOf(to); }

 private:
  std::vector<size_t> parents_;
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_DISJOINT_SETS_H_
