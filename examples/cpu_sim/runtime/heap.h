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

// What the owner of some memory has handed out, in bytes.
struct HeapStats {
  size_t limit = 0;         // all there is
  size_t in_use = 0;        // handed out now, rounded up to kAlignment
  size_t peak = 0;          // the most that was ever in use
  size_t largest = 0;       // the largest single allocation so far
  int64_t allocations = 0;  // how often Allocate() succeeded
};

// Hands out ranges of [0, size): best fit, neighbours merged when freed.
// The bookkeeping lies outside the range, because the host may not write to
// the memory that it describes. Thread-safe.
class Heap {
 public:
  // Offsets and sizes are multiples of this.
  static constexpr size_t kAlignment = 256;

  // `size` is rounded down to kAlignment.
  explicit Heap(size_t size);
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // The offset of a free range. RESOURCE_EXHAUSTED when no hole is large
  // enough. `bytes` must not be 0.
  absl::StatusOr<size_t> Allocate(size_t bytes);

  // INVALID_ARGUMENT when nothing was allocated at `offset`.
  absl::Status Free(size_t offset);

  HeapStats stats() const;

 private:
  using Holes = std::map<size_t, size_t>;  // offset -> size

  void AddHole(size_t offset, size_t size);
  void RemoveHole(Holes::iterator hole);

  mutable std::mutex mutex_;
  std::map<size_t, size_t> used_;  // offset -> size
  Holes holes_;
  // The same holes, smallest first; equal sizes lowest offset first.
  std::set<std::pair<size_t, size_t>> holes_by_size_;
  HeapStats stats_;
};

}  // namespace cpu_sim::rt

#endif  // CPU_SIM_RUNTIME_HEAP_H_
