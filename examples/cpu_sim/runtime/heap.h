// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_RUNTIME_HEAP_H_
#define CPU_SIM_RUNTIME_HEAP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cpu_sim::rt {

// Statistics of a heap, in bytes.
struct HeapStats {
  size_t limit = 0;         // the size of the heap
  size_t in_use = 0;        // allocated now, rounded up to kAlignment
  size_t peak = 0;          // the maximum of in_use
  size_t largest = 0;       // the largest single allocation so far
  int64_t allocations = 0;  // successful calls of Allocate()
};

// Allocates ranges of [0, size) by best fit and merges adjacent free ranges.
// The bookkeeping is separate, because the host cannot access the memory that
// it describes. Thread-safe.
class Heap {
 public:
  // Offsets and sizes are multiples of this.
  static constexpr size_t kAlignment = 256;

  // Rounds `size` down to kAlignment.
  explicit Heap(size_t size);
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // Returns the offset of a new range, or RESOURCE_EXHAUSTED if no free range
  // is large enough. `bytes` must not be 0.
  absl::StatusOr<size_t> Allocate(size_t bytes);

  // Returns INVALID_ARGUMENT if no range was allocated at `offset`.
  absl::Status Free(size_t offset);

  HeapStats stats() const;

 private:
  using Holes = std::map<size_t, size_t>;  // offset -> size

  void AddHole(size_t offset, size_t size);
  void RemoveHole(Holes::iterator hole);

  mutable std::mutex mutex_;
  std::map<size_t, size_t> used_;  // offset -> size
  Holes holes_;
  // The same holes ordered by size, then by offset.
  std::set<std::pair<size_t, size_t>> holes_by_size_;
  HeapStats stats_;
};

}  // namespace cpu_sim::rt

#endif  // CPU_SIM_RUNTIME_HEAP_H_
