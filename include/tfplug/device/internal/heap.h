// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_HEAP_H_
#define TFPLUG_DEVICE_INTERNAL_HEAP_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tfplug/base/device_memory.h"
#include "tfplug/device/allocator.h"
#include "tfplug/device/internal/heap_bins.h"
#include "tfplug/device/internal/heap_chunks.h"

namespace tfplug {

// What CachingAllocator has in chunks of [min_size, 2 * min_size) bytes.
struct CachingSizeClass {
  uint64_t min_size = 0;
  int64_t num_allocs = 0;       // how often one was handed out
  int64_t chunks_in_use = 0;    // handed out now
  int64_t bytes_in_use = 0;     // their sizes
  int64_t bytes_requested = 0;  // what was asked for; the rest is rounding
  int64_t free_chunks = 0;      // kept for later
  int64_t free_bytes = 0;
};

namespace internal {

// The books of CachingAllocator: which piece of which region is in use. Knows
// no driver and takes no lock. Sizes are in bytes, multiples of one rounding.
class CachingHeap {
 public:
  CachingHeap() {
    for (size_t i = 0; i < classes_.size(); ++i) {
      classes_[i].min_size = uint64_t{1} << i;
    }
  }
  CachingHeap(const CachingHeap&) = delete;
  CachingHeap& operator=(const CachingHeap&) = delete;

  // Makes room on the host for what one allocation may have to note down; the
  // only function here that allocates. Throws before it changes anything.
  void Reserve() { chunks_.Reserve(2); }
  void ReserveRegion() {
    if (regions_in_use_ == regions_.size()) {
      regions_.resize(std::max<size_t>(16, 2 * regions_.size()));
    }
  }

  // The chunk that fits best, for HandOut; 0 when none is large enough.
  uint32_t TakeBestFit(uint64_t size) {
    const uint32_t chunk = bins_.BestFit(size);
    if (chunk != 0) RemoveFree(chunk);
    return chunk;
  }

  // Enters memory of the driver's, and returns all of it for HandOut. What is
  // in a memory space other than 0 goes into no bin when it is free.
  uint32_t AddRegion(DeviceMemory memory, uint64_t size, int64_t memory_space) {
    uint32_t region = 0;
    while (regions_[region].chunk != 0) ++region;
    const uint32_t chunk = chunks_.New();
    Chunk& whole = chunks_[chunk];
    whole.address = reinterpret_cast<uintptr_t>(memory.opaque());
    whole.size = size;
    whole.requested = 0;
    whole.region = region;
    whole.before = whole.after = 0;
    regions_[region] = {memory, size, memory_space, chunk};
    ++regions_in_use_;
    stats_.bytes_reserved += static_cast<int64_t>(size);
    stats_.peak_bytes_reserved =
        std::max(stats_.peak_bytes_reserved, stats_.bytes_reserved);
    return chunk;
  }

  // Hands out `chunk`, or its first `size` bytes where the rest is worth
  // keeping.
  DeviceMemory HandOut(uint32_t chunk, uint64_t size, uint64_t requested) {
    Chunk& taken = chunks_[chunk];
    if (IsWorthSplitting(taken.size - size, size)) Split(chunk, size);
    taken.requested = requested;
    chunks_.Enter(chunk);

    const int64_t bytes = static_cast<int64_t>(taken.size);
    ++stats_.num_allocs;
    stats_.bytes_in_use += bytes;
    stats_.peak_bytes_in_use =
        std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
    stats_.largest_alloc_size = std::max(stats_.largest_alloc_size, bytes);
    CachingSizeClass& size_class = ClassOf(taken);
    ++size_class.num_allocs;
    ++size_class.chunks_in_use;
    size_class.bytes_in_use += bytes;
    size_class.bytes_requested += static_cast<int64_t>(requested);
    return DeviceMemory(
        reinterpret_cast<void*>(taken.address),  // NOLINT(*-no-int-to-ptr)
        requested);
  }

  // Takes back what was handed out at `address`, and merges it with its free
  // neighbours. The chunk that it is part of then; 0 when nothing is handed
  // out there.
  uint32_t TakeBack(const void* address) {
    uint32_t chunk = chunks_.Remove(reinterpret_cast<uintptr_t>(address));
    if (chunk == 0) return 0;
    Chunk& back = chunks_[chunk];
    const int64_t bytes = static_cast<int64_t>(back.size);
    stats_.bytes_in_use -= bytes;
    CachingSizeClass& size_class = ClassOf(back);
    --size_class.chunks_in_use;
    size_class.bytes_in_use -= bytes;
    size_class.bytes_requested -= static_cast<int64_t>(back.requested);
    back.requested = 0;

    if (back.after != 0 && !chunks_[back.after].in_use()) {
      RemoveFree(back.after);
      MergeWithNext(chunk);
    }
    if (back.before != 0 && !chunks_[back.before].in_use()) {
      chunk = back.before;
      RemoveFree(chunk);
      MergeWithNext(chunk);
    }
    if (regions_[chunks_[chunk].region].memory_space == 0) InsertFree(chunk);
    return chunk;
  }

  int64_t MemorySpaceOf(uint32_t chunk) const {
    return regions_[chunks_[chunk].region].memory_space;
  }

  // Strikes out the region that is all one chunk, in no bin.
  DeviceMemory RemoveRegion(uint32_t chunk) {
    Region& region = regions_[chunks_[chunk].region];
    region.chunk = 0;
    --regions_in_use_;
    stats_.bytes_reserved -= static_cast<int64_t>(chunks_[chunk].size);
    chunks_.Delete(chunk);
    return region.memory;
  }

  // Strikes out every region with nothing in use, calls `give_back` with each,
  // and returns how many bytes that were.
  template <class GiveBack>
  uint64_t RemoveFreeRegions(GiveBack give_back) {
    const int64_t before = stats_.bytes_reserved;
    for (const Region& region : regions_) {
      const uint32_t chunk = region.chunk;
      if (chunk == 0 || chunks_[chunk].in_use()) continue;
      if (chunks_[chunk].after != 0) continue;
      RemoveFree(chunk);
      give_back(RemoveRegion(chunk));
    }
    return static_cast<uint64_t>(before - stats_.bytes_reserved);
  }

  // Calls `give_back` with every region, in use or not; the end.
  template <class GiveBack>
  void RemoveAllRegions(GiveBack give_back) {
    for (Region& region : regions_) {
      if (region.chunk == 0) continue;
      region.chunk = 0;
      give_back(region.memory);
    }
    regions_in_use_ = 0;
  }

  // Whether `address` lies in memory that the driver gave.
  bool Contains(const void* address) const {
    for (const Region& region : regions_) {
      const auto start = reinterpret_cast<uintptr_t>(region.memory.opaque());
      const auto distance = reinterpret_cast<uintptr_t>(address) - start;
      if (region.chunk != 0 && distance < region.size) return true;
    }
    return false;
  }

  // All but the limits.
  AllocatorStats Stats() const {
    AllocatorStats stats = stats_;
    stats.largest_free_block_bytes = static_cast<int64_t>(bins_.LargestSize());
    return stats;
  }
  uint64_t bytes_reserved() const {
    return static_cast<uint64_t>(stats_.bytes_reserved);
  }
  size_t num_regions() const { return regions_in_use_; }

  // The classes that anything was ever in, smallest first.
  std::vector<CachingSizeClass> SizeClasses() const {
    std::vector<CachingSizeClass> result;
    for (const CachingSizeClass& c : classes_) {
      if (c.num_allocs != 0 || c.free_chunks != 0) result.push_back(c);
    }
    return result;
  }

 private:
  struct Region {
    DeviceMemory memory;  // as the driver gave it
    uint64_t size = 0;    // what was asked for
    int64_t memory_space = 0;
    uint32_t chunk = 0;  // the first; 0: this place is unused
  };

  // A rest that is small beside what is taken would be of use to few, and stand
  // between neighbours: it goes out with the allocation, and makes it larger by
  // one sixteenth at most.
  static bool IsWorthSplitting(uint64_t rest, uint64_t size) {
    return rest > size / 16;
  }

  // Cuts `chunk` after `size` bytes; what is behind becomes a free chunk.
  void Split(uint32_t chunk, uint64_t size) {
    const uint32_t rest = chunks_.New();
    Chunk& front = chunks_[chunk];
    Chunk& back = chunks_[rest];
    back.address = front.address + size;
    back.size = front.size - size;
    back.requested = 0;
    back.region = front.region;
    back.before = chunk;
    back.after = front.after;
    if (back.after != 0) chunks_[back.after].before = rest;
    front.after = rest;
    front.size = size;
    InsertFree(rest);
  }

  void MergeWithNext(uint32_t chunk) {
    Chunk& front = chunks_[chunk];
    const uint32_t next = front.after;
    front.size += chunks_[next].size;
    front.after = chunks_[next].after;
    if (front.after != 0) chunks_[front.after].before = chunk;
    chunks_.Delete(next);
  }

  void InsertFree(uint32_t chunk) {
    bins_.Insert(chunk);
    CachingSizeClass& size_class = ClassOf(chunks_[chunk]);
    ++size_class.free_chunks;
    size_class.free_bytes += static_cast<int64_t>(chunks_[chunk].size);
  }

  void RemoveFree(uint32_t chunk) {
    bins_.Remove(chunk);
    CachingSizeClass& size_class = ClassOf(chunks_[chunk]);
    --size_class.free_chunks;
    size_class.free_bytes -= static_cast<int64_t>(chunks_[chunk].size);
  }

  CachingSizeClass& ClassOf(const Chunk& chunk) {
    return classes_[static_cast<size_t>(SizeClassOf(chunk.size))];
  }

  ChunkTable chunks_;
  FreeBins bins_{chunks_};
  std::vector<Region> regions_;
  size_t regions_in_use_ = 0;
  AllocatorStats stats_;
  std::array<CachingSizeClass, 64> classes_;
};

}  // namespace internal
}  // namespace tfplug

#endif  // TFPLUG_DEVICE_INTERNAL_HEAP_H_
