// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_HEAP_H_
#define TFPLUG_DEVICE_INTERNAL_HEAP_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/device_memory.h"
#include "tfplug/device/allocator.h"
#include "tfplug/device/caching_allocator_options.h"
#include "tfplug/device/internal/heap_chunks.h"
#include "tfplug/device/internal/heap_regions.h"
#include "tfplug/device/internal/heap_statistics.h"

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// The heap of a CachingAllocator. It divides the regions obtained from `Source`
// into chunks: each allocation uses one chunk, and free chunks are cached. All
// bookkeeping is in host memory. Sizes are in bytes. Not thread-safe.
template <class Source>
class CachingHeap {
 public:
  explicit CachingHeap(Source& source) : regions_(source) {}

  absl::Status SetOptions(const CachingAllocatorOptions& options) {
    return regions_.SetOptions(options);
  }

  absl::StatusOr<DeviceMemory> Allocate(uint64_t size, int64_t memory_space) {
    if (ABSL_PREDICT_FALSE(size > regions_.kLargest)) {
      return OutOfMemory(size, "no address space is that large");
    }
    const uint64_t rounded = regions_.RoundUp(size);
    // One record for the chunk of a new region, one for the remainder of a
    // split chunk.
    chunks_.Reserve(2);
    uint32_t chunk = 0;
    if (ABSL_PREDICT_TRUE(memory_space == 0)) {
      chunk = free_.FindBestFit(rounded);
    }
    if (ABSL_PREDICT_TRUE(chunk != 0)) {
      RemoveFree(chunk);
    } else {
      absl::StatusOr<uint32_t> grown = Grow(size, rounded, memory_space);
      if (!grown.ok()) return std::move(grown).status();
      chunk = *grown;
    }
    return Use(chunk, rounded, size);
  }

  absl::Status Deallocate(DeviceMemory memory) {
    uint32_t chunk =
        chunks_.RemoveInUse(reinterpret_cast<uintptr_t>(memory.opaque()));
    if (ABSL_PREDICT_FALSE(chunk == 0)) return NotInUse(memory);
    statistics_.RemoveInUse(chunks_[chunk]);
    chunks_[chunk].requested = 0;
    chunk = MergeWithNeighbors(chunk);
    if (ABSL_PREDICT_TRUE(regions_[chunks_[chunk].region].memory_space == 0)) {
      AddFree(chunk);
      return absl::OkStatus();
    }
    return regions_.ReleaseOrFail(RemoveRegion(chunk));
  }

  // Releases the regions in which nothing is in use, and returns their total
  // size.
  uint64_t ReleaseFreeRegions() {
    const int64_t before = regions_.bytes_reserved();
    for (const auto& region : regions_.entries()) {
      const uint32_t chunk = region.chunk;
      if (chunk == 0 || chunks_[chunk].in_use()) continue;
      if (chunks_[chunk].after != 0) continue;
      RemoveFree(chunk);
      regions_.Release(RemoveRegion(chunk));
    }
    return static_cast<uint64_t>(before - regions_.bytes_reserved());
  }

  AllocatorStats Stats() const {
    AllocatorStats stats = statistics_.totals();
    stats.bytes_reserved = regions_.bytes_reserved();
    stats.peak_bytes_reserved = regions_.peak_bytes_reserved();
    stats.largest_free_block_bytes = static_cast<int64_t>(free_.LargestSize());
    if (regions_.options().limit.has_value()) {
      stats.bytes_limit = stats.bytes_reservable_limit =
          static_cast<int64_t>(limit());
    }
    return stats;
  }
  uint64_t limit() const { return regions_.limit(); }

  // Returns the size classes that have been used, smallest first.
  std::vector<CachingSizeClass> SizeClasses() const {
    return statistics_.SizeClasses();
  }

 private:
  // Obtains a region of at least `rounded` bytes and returns the chunk that
  // covers it. Releases free regions if memory has run out.
  absl::StatusOr<uint32_t> Grow(uint64_t size, uint64_t rounded,
                                int64_t memory_space) {
    absl::StatusOr<uint32_t> region = regions_.Add(rounded, memory_space);
    if (absl::IsResourceExhausted(region.status()) &&
        ReleaseFreeRegions() != 0) {
      region = regions_.Add(rounded, memory_space);
    }
    if (absl::IsResourceExhausted(region.status())) {
      return OutOfMemory(size, region.status().message());
    }
    if (!region.ok()) return region;
    const uint32_t chunk = chunks_.New();
    regions_.SetChunk(*region, chunk);
    Chunk& whole = chunks_[chunk];
    whole.address =
        reinterpret_cast<uintptr_t>(regions_[*region].memory.opaque());
    whole.size = regions_[*region].size;
    whole.region = *region;
    whole.before = whole.after = 0;
    return chunk;
  }

  // Removes the region that consists of `chunk`, which is not in `free_`, and
  // returns its memory.
  DeviceMemory RemoveRegion(uint32_t chunk) {
    const uint32_t region = chunks_[chunk].region;
    chunks_.Delete(chunk);
    return regions_.Remove(region);
  }

  // Returns the first `size` bytes of `chunk`, and splits off the remainder if
  // it is large enough. A small remainder would rarely be used and would
  // separate its neighbors; without a split, the allocation is at most a
  // sixteenth larger.
  DeviceMemory Use(uint32_t chunk, uint64_t size, uint64_t requested) {
    Chunk& used = chunks_[chunk];
    if (used.size - size > size / 16) Split(chunk, size);
    used.requested = requested;
    chunks_.AddInUse(chunk);
    statistics_.AddInUse(used);
    return DeviceMemory(
        reinterpret_cast<void*>(used.address),  // NOLINT(*-no-int-to-ptr)
        requested);
  }

  // Splits `chunk` after `size` bytes; the remainder becomes a free chunk.
  void Split(uint32_t chunk, uint64_t size) {
    const uint32_t rest = chunks_.New();
    Chunk& front = chunks_[chunk];
    Chunk& back = chunks_[rest];
    back.address = front.address + size;
    back.size = front.size - size;
    back.region = front.region;
    back.before = chunk;
    back.after = front.after;
    if (back.after != 0) chunks_[back.after].before = rest;
    front.after = rest;
    front.size = size;
    AddFree(rest);
  }

  // Merges `chunk` with its free neighbors, and returns the resulting chunk.
  uint32_t MergeWithNeighbors(uint32_t chunk) {
    const uint32_t after = chunks_[chunk].after;
    if (after != 0 && !chunks_[after].in_use()) {
      RemoveFree(after);
      MergeWithNext(chunk);
    }
    const uint32_t before = chunks_[chunk].before;
    if (before != 0 && !chunks_[before].in_use()) {
      RemoveFree(before);
      MergeWithNext(before);
      return before;
    }
    return chunk;
  }

  void MergeWithNext(uint32_t chunk) {
    Chunk& front = chunks_[chunk];
    const uint32_t next = front.after;
    front.size += chunks_[next].size;
    front.after = chunks_[next].after;
    if (front.after != 0) chunks_[front.after].before = chunk;
    chunks_.Delete(next);
  }

  void AddFree(uint32_t chunk) {
    free_.Insert(chunk);
    statistics_.AddFree(chunks_[chunk]);
  }
  void RemoveFree(uint32_t chunk) {
    free_.Remove(chunk);
    statistics_.RemoveFree(chunks_[chunk]);
  }

  [[gnu::cold, gnu::noinline]] absl::Status OutOfMemory(
      uint64_t size, absl::string_view reason) const {
    const AllocatorStats stats = Stats();
    const size_t regions = regions_.count();
    std::string message =
        "out of device memory allocating " + std::to_string(size) + " bytes: ";
    message += std::to_string(stats.bytes_in_use) + " bytes in use, " +
               std::to_string(stats.bytes_reserved) + " reserved in " +
               std::to_string(regions) +
               (regions == 1 ? " region" : " regions") +
               ", largest free block " +
               std::to_string(stats.largest_free_block_bytes);
    if (regions_.options().limit.has_value()) {
      message += ", limit " + std::to_string(*regions_.options().limit);
    }
    message.append(": ").append(reason.data(), reason.size());
    return absl::ResourceExhaustedError(message);
  }

  [[gnu::cold, gnu::noinline]] absl::Status NotInUse(
      DeviceMemory memory) const {
    char message[128];
    std::snprintf(message, sizeof(message), "ignored: %p %s", memory.opaque(),
                  regions_.Contains(memory)
                      ? "was already deallocated, or is not the beginning of "
                        "an allocation"
                      : "is not memory of this allocator");
    return absl::InvalidArgumentError(message);
  }

  HeapRegions<Source> regions_;
  ChunkTable chunks_;
  FreeChunks free_{chunks_};
  HeapStatistics statistics_;
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_HEAP_H_
