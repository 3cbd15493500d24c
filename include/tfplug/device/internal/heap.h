// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_HEAP_H_
#define TFPLUG_DEVICE_INTERNAL_HEAP_H_

#include <algorithm>
#include <array>
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
#include "tfplug/base/internal/guard.h"
#include "tfplug/device/allocator.h"
#include "tfplug/device/caching_allocator_options.h"
#include "tfplug/device/internal/heap_chunks.h"

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// The heap of a CachingAllocator. It obtains regions from `Source` and divides
// them into chunks; the destructor releases them. All bookkeeping is in host
// memory. Sizes are in bytes. Not thread-safe.
template <class Source>
class CachingHeap {
 public:
  explicit CachingHeap(Source& source) : source_(source) {
    for (size_t i = 0; i < classes_.size(); ++i) {
      classes_[i].min_size = uint64_t{1} << i;
    }
  }
  CachingHeap(const CachingHeap&) = delete;
  CachingHeap& operator=(const CachingHeap&) = delete;
  ~CachingHeap() {
    for (const Region& region : regions_) {
      if (region.chunk != 0) Release(region.memory);
    }
  }

  absl::Status SetOptions(const CachingAllocatorOptions& options) {
    options_ = options;
    const uint64_t rounding = options_.rounding;
    if (rounding < 64 || (rounding & (rounding - 1)) != 0) {
      return absl::InvalidArgumentError(
          "CachingAllocatorOptions::rounding is " + std::to_string(rounding) +
          ", but must be a power of two and at least 64");
    }
    options_.largest_region =
        RoundDown(std::min(options_.largest_region, kLargest));
    next_region_ =
        std::min(RoundDown(options_.first_region), options_.largest_region);
    return absl::OkStatus();
  }

  absl::StatusOr<DeviceMemory> Allocate(uint64_t size, int64_t memory_space) {
    if (ABSL_PREDICT_FALSE(size > kLargest)) {
      return OutOfMemory(size, "no address space is that large");
    }
    const uint64_t rounded = RoundDown(size + options_.rounding - 1);
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
    CountFreed(chunk);
    chunks_[chunk].requested = 0;
    chunk = MergeWithNeighbors(chunk);
    if (ABSL_PREDICT_TRUE(regions_[chunks_[chunk].region].memory_space == 0)) {
      AddFree(chunk);
      return absl::OkStatus();
    }
    return source_.Source::Deallocate(RemoveRegion(chunk));
  }

  // Releases the regions in which nothing is in use, and returns their total
  // size.
  uint64_t ReleaseFreeRegions() {
    const int64_t before = stats_.bytes_reserved;
    for (const Region& region : regions_) {
      const uint32_t chunk = region.chunk;
      if (chunk == 0 || chunks_[chunk].in_use()) continue;
      if (chunks_[chunk].after != 0) continue;
      RemoveFree(chunk);
      Release(RemoveRegion(chunk));
    }
    return static_cast<uint64_t>(before - stats_.bytes_reserved);
  }

  AllocatorStats Stats() const {
    AllocatorStats stats = stats_;
    stats.largest_free_block_bytes = static_cast<int64_t>(free_.LargestSize());
    if (options_.limit.has_value()) {
      stats.bytes_limit = stats.bytes_reservable_limit =
          static_cast<int64_t>(limit());
    }
    return stats;
  }
  uint64_t limit() const {
    return std::min(options_.limit.value_or(kLargest), kLargest);
  }

  // Returns the size classes that have been used, smallest first.
  std::vector<CachingSizeClass> SizeClasses() const {
    std::vector<CachingSizeClass> result;
    for (const CachingSizeClass& c : classes_) {
      if (c.num_allocs != 0 || c.free_chunks != 0) result.push_back(c);
    }
    return result;
  }

 private:
  // The largest supported size; after rounding, it still fits into int64_t.
  static constexpr uint64_t kLargest = uint64_t{1} << 62;
  static constexpr uint32_t kNoRegion = UINT32_MAX;

  struct Region {
    DeviceMemory memory;  // the value that Source returned
    uint64_t size = 0;    // as requested from Source
    int64_t memory_space = 0;
    uint32_t chunk = 0;  // the first chunk; 0 if this entry is unused
    uint32_t next_unused = kNoRegion;
  };

  uint64_t RoundDown(uint64_t size) const {
    return size & ~(options_.rounding - 1);
  }

  // ---- Regions -------------------------------------------------------------

  // Obtains a region of at least `rounded` bytes and returns the chunk that
  // covers it.
  absl::StatusOr<uint32_t> Grow(uint64_t size, uint64_t rounded,
                                int64_t memory_space) {
    if (unused_region_ == kNoRegion) {
      regions_.emplace_back();
      unused_region_ = static_cast<uint32_t>(regions_.size() - 1);
    }
    absl::StatusOr<uint32_t> chunk = TryToGrow(rounded, memory_space);
    if (absl::IsResourceExhausted(chunk.status()) &&
        ReleaseFreeRegions() != 0) {
      chunk = TryToGrow(rounded, memory_space);
    }
    if (absl::IsResourceExhausted(chunk.status())) {
      return OutOfMemory(size, chunk.status().message());
    }
    return chunk;
  }

  // Requests a region of the usual size, then smaller ones down to `rounded`.
  // The next usual size is twice the size that succeeded, up to
  // `largest_region`; a region for a larger allocation does not change it.
  absl::StatusOr<uint32_t> TryToGrow(uint64_t rounded, int64_t memory_space) {
    const uint64_t left =
        limit() - static_cast<uint64_t>(stats_.bytes_reserved);
    if (rounded > left) {
      return absl::ResourceExhaustedError("CachingAllocatorOptions::limit");
    }
    uint64_t region = rounded;
    if (memory_space == 0 && rounded < next_region_) {
      region = std::max(rounded, RoundDown(std::min(next_region_, left)));
    }
    while (true) {
      absl::StatusOr<DeviceMemory> memory = Obtain(region, memory_space);
      if (memory.ok()) {
        if (region == next_region_) {
          next_region_ = std::min(2 * region, options_.largest_region);
        }
        return AddRegion(*memory, region, memory_space);
      }
      if (region == rounded || !absl::IsResourceExhausted(memory.status())) {
        return std::move(memory).status();
      }
      region = std::max(rounded, RoundDown(region / 2));
      next_region_ = region;
    }
  }

  // Calls Source::Allocate and validates the result; catches exceptions.
  absl::StatusOr<DeviceMemory> Obtain(uint64_t size, int64_t memory_space) {
    absl::StatusOr<DeviceMemory> memory = [&]() -> decltype(memory) {
      TFPLUG_INTERNAL_TRY {
        return source_.Source::Allocate(size, memory_space);
      }
      TFPLUG_INTERNAL_CATCH_ALL { return CurrentException(); }
    }();
    if (!memory.ok()) return memory;
    if (memory->is_null()) {
      return absl::ResourceExhaustedError(
          "the allocator that CachingAllocator wraps returned null");
    }
    if (memory->size() < size) {
      const std::string actual = std::to_string(memory->size());
      Release(*memory);
      return absl::InternalError(
          "the allocator that CachingAllocator wraps returned " + actual +
          " bytes instead of " + std::to_string(size));
    }
    return memory;
  }

  void Release(DeviceMemory region) {
    GuardOrLog("deallocate",
               [&] { return source_.Source::Deallocate(region); });
  }

  uint32_t AddRegion(DeviceMemory memory, uint64_t size, int64_t memory_space) {
    const uint32_t region = unused_region_;
    unused_region_ = regions_[region].next_unused;
    const uint32_t chunk = chunks_.New();
    Chunk& whole = chunks_[chunk];
    whole.address = reinterpret_cast<uintptr_t>(memory.opaque());
    whole.size = size;
    whole.requested = 0;
    whole.region = region;
    whole.before = whole.after = 0;
    regions_[region] = {memory, size, memory_space, chunk, kNoRegion};
    ++num_regions_;
    stats_.bytes_reserved += static_cast<int64_t>(size);
    stats_.peak_bytes_reserved =
        std::max(stats_.peak_bytes_reserved, stats_.bytes_reserved);
    return chunk;
  }

  // Removes the region that consists of `chunk`, which is not in `free_`.
  DeviceMemory RemoveRegion(uint32_t chunk) {
    const uint32_t index = chunks_[chunk].region;
    Region& region = regions_[index];
    region.chunk = 0;
    region.next_unused = unused_region_;
    unused_region_ = index;
    --num_regions_;
    stats_.bytes_reserved -= static_cast<int64_t>(chunks_[chunk].size);
    chunks_.Delete(chunk);
    return region.memory;
  }

  // ---- Chunks --------------------------------------------------------------

  // Returns the first `size` bytes of `chunk`, and splits off the remainder if
  // it is large enough. A small remainder would rarely be used and would
  // separate its neighbors; without a split, the allocation is at most a
  // sixteenth larger.
  DeviceMemory Use(uint32_t chunk, uint64_t size, uint64_t requested) {
    Chunk& used = chunks_[chunk];
    if (used.size - size > size / 16) Split(chunk, size);
    used.requested = requested;
    chunks_.AddInUse(chunk);
    CountUsed(used);
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
    back.requested = 0;
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

  // ---- Free chunks and statistics ------------------------------------------

  CachingSizeClass& ClassOf(const Chunk& chunk) {
    return classes_[static_cast<size_t>(SizeClassOf(chunk.size))];
  }

  void AddFree(uint32_t chunk) {
    free_.Insert(chunk);
    CachingSizeClass& size_class = ClassOf(chunks_[chunk]);
    ++size_class.free_chunks;
    size_class.free_bytes += static_cast<int64_t>(chunks_[chunk].size);
  }

  void RemoveFree(uint32_t chunk) {
    free_.Remove(chunk);
    CachingSizeClass& size_class = ClassOf(chunks_[chunk]);
    --size_class.free_chunks;
    size_class.free_bytes -= static_cast<int64_t>(chunks_[chunk].size);
  }

  void CountUsed(const Chunk& chunk) {
    const auto bytes = static_cast<int64_t>(chunk.size);
    ++stats_.num_allocs;
    stats_.bytes_in_use += bytes;
    stats_.peak_bytes_in_use =
        std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
    stats_.largest_alloc_size = std::max(stats_.largest_alloc_size, bytes);
    CachingSizeClass& size_class = ClassOf(chunk);
    ++size_class.num_allocs;
    ++size_class.chunks_in_use;
    size_class.bytes_in_use += bytes;
    size_class.bytes_requested += static_cast<int64_t>(chunk.requested);
  }

  void CountFreed(uint32_t index) {
    const Chunk& chunk = chunks_[index];
    const auto bytes = static_cast<int64_t>(chunk.size);
    stats_.bytes_in_use -= bytes;
    CachingSizeClass& size_class = ClassOf(chunk);
    --size_class.chunks_in_use;
    size_class.bytes_in_use -= bytes;
    size_class.bytes_requested -= static_cast<int64_t>(chunk.requested);
  }

  // ---- Errors --------------------------------------------------------------

  [[gnu::cold, gnu::noinline]] absl::Status OutOfMemory(
      uint64_t size, absl::string_view reason) const {
    const AllocatorStats stats = Stats();
    std::string message =
        "out of device memory allocating " + std::to_string(size) + " bytes: ";
    message += std::to_string(stats.bytes_in_use) + " bytes in use, " +
               std::to_string(stats.bytes_reserved) + " reserved in " +
               std::to_string(num_regions_) +
               (num_regions_ == 1 ? " region" : " regions") +
               ", largest free block " +
               std::to_string(stats.largest_free_block_bytes);
    if (options_.limit.has_value()) {
      message += ", limit " + std::to_string(*options_.limit);
    }
    message.append(": ").append(reason.data(), reason.size());
    return absl::ResourceExhaustedError(message);
  }

  [[gnu::cold, gnu::noinline]] absl::Status NotInUse(
      DeviceMemory memory) const {
    bool is_ours = false;
    for (const Region& region : regions_) {
      const uintptr_t distance =
          reinterpret_cast<uintptr_t>(memory.opaque()) -
          reinterpret_cast<uintptr_t>(region.memory.opaque());
      is_ours |= region.chunk != 0 && distance < region.size;
    }
    char message[128];
    std::snprintf(message, sizeof(message), "ignored: %p %s", memory.opaque(),
                  is_ours ? "was already deallocated, or is not the beginning "
                            "of an allocation"
                          : "is not memory of this allocator");
    return absl::InvalidArgumentError(message);
  }

  Source& source_;
  CachingAllocatorOptions options_;
  uint64_t next_region_ = 0;
  ChunkTable chunks_;
  FreeChunks free_{chunks_};
  std::vector<Region> regions_;
  uint32_t unused_region_ = kNoRegion;
  size_t num_regions_ = 0;
  AllocatorStats stats_;
  std::array<CachingSizeClass, 64> classes_;
};

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_HEAP_H_
