// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_HEAP_STATISTICS_H_
#define TFPLUG_DEVICE_INTERNAL_HEAP_STATISTICS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tfplug/device/allocator.h"
#include "tfplug/device/caching_allocator_options.h"
#include "tfplug/device/internal/heap_chunks.h"

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// Counts the chunks of a CachingHeap, in total and for each power of two.
class HeapStatistics {
 public:
  HeapStatistics() {
    for (size_t i = 0; i < classes_.size(); ++i) {
      classes_[i].min_size = uint64_t{1} << i;
    }
  }

  void AddFree(const Chunk& chunk) {
    CachingSizeClass& size_class = ClassOf(chunk);
    ++size_class.free_chunks;
    size_class.free_bytes += static_cast<int64_t>(chunk.size);
  }
  void RemoveFree(const Chunk& chunk) {
    CachingSizeClass& size_class = ClassOf(chunk);
    --size_class.free_chunks;
    size_class.free_bytes -= static_cast<int64_t>(chunk.size);
  }

  void AddInUse(const Chunk& chunk) {
    const auto bytes = static_cast<int64_t>(chunk.size);
    ++totals_.num_allocs;
    totals_.bytes_in_use += bytes;
    totals_.peak_bytes_in_use =
        std::max(totals_.peak_bytes_in_use, totals_.bytes_in_use);
    totals_.largest_alloc_size = std::max(totals_.largest_alloc_size, bytes);
    CachingSizeClass& size_class = ClassOf(chunk);
    ++size_class.num_allocs;
    ++size_class.chunks_in_use;
    size_class.bytes_in_use += bytes;
    size_class.bytes_requested += static_cast<int64_t>(chunk.requested);
  }
  void RemoveInUse(const Chunk& chunk) {
    const auto bytes = static_cast<int64_t>(chunk.size);
    totals_.bytes_in_use -= bytes;
    CachingSizeClass& size_class = ClassOf(chunk);
    --size_class.chunks_in_use;
    size_class.bytes_in_use -= bytes;
    size_class.bytes_requested -= static_cast<int64_t>(chunk.requested);
  }

  // Returns the statistics of allocations; the fields about reserved memory,
  // free memory and limits are not set.
  const AllocatorStats& totals() const { return totals_; }

  // Returns the size classes that have been used, smallest first.
  std::vector<CachingSizeClass> SizeClasses() const {
    std::vector<CachingSizeClass> result;
    for (const CachingSizeClass& c : classes_) {
      if (c.num_allocs != 0 || c.free_chunks != 0) result.push_back(c);
    }
    return result;
  }

 private:
  CachingSizeClass& ClassOf(const Chunk& chunk) {
    return classes_[static_cast<size_t>(SizeClassOf(chunk.size))];
  }

  AllocatorStats totals_;
  std::array<CachingSizeClass, 64> classes_;
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_HEAP_STATISTICS_H_
