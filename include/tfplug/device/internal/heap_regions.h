// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_HEAP_REGIONS_H_
#define TFPLUG_DEVICE_INTERNAL_HEAP_REGIONS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/device_memory.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/device/caching_allocator_options.h"

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// Obtains the regions of a CachingHeap from `Source`, the author's allocator,
// and decides their sizes. The destructor releases them. Sizes are in bytes.
// Not thread-safe.
template <class Source>
class HeapRegions {
 public:
  // The largest supported size; after rounding, it still fits into int64_t.
  static constexpr uint64_t kLargest = uint64_t{1} << 62;

  struct Region {
    DeviceMemory memory;  // the value that Source returned
    uint64_t size = 0;    // as requested from Source
    int64_t memory_space = 0;
    uint32_t chunk = 0;  // the first chunk; 0 if this entry is unused
    uint32_t next_unused = kNone;
  };

  explicit HeapRegions(Source& source) : source_(source) {}
  HeapRegions(const HeapRegions&) = delete;
  HeapRegions& operator=(const HeapRegions&) = delete;
  ~HeapRegions() {
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
    next_size_ =
        std::min(RoundDown(options_.first_region), options_.largest_region);
    return absl::OkStatus();
  }
  const CachingAllocatorOptions& options() const { return options_; }
  uint64_t limit() const {
    return std::min(options_.limit.value_or(kLargest), kLargest);
  }
  uint64_t RoundDown(uint64_t size) const {
    return size & ~(options_.rounding - 1);
  }
  uint64_t RoundUp(uint64_t size) const {
    return RoundDown(size + options_.rounding - 1);
  }

  // Returns every entry, including unused ones.
  const std::vector<Region>& entries() const { return regions_; }
  const Region& operator[](uint32_t region) const { return regions_[region]; }
  size_t count() const { return count_; }
  int64_t bytes_reserved() const { return bytes_reserved_; }
  int64_t peak_bytes_reserved() const { return peak_bytes_reserved_; }

  // Obtains a region of at least `rounded` bytes, a rounded size, and returns
  // its index; the caller then calls SetChunk. Requests the next size, then
  // smaller ones down to `rounded`. The size after that is twice the size that
  // succeeded, up to `largest_region`; a region for a larger allocation does
  // not change it.
  absl::StatusOr<uint32_t> Add(uint64_t rounded, int64_t memory_space) {
    if (unused_ == kNone) {
      regions_.emplace_back();
      unused_ = static_cast<uint32_t>(regions_.size() - 1);
    }
    const uint64_t left = limit() - static_cast<uint64_t>(bytes_reserved_);
    if (rounded > left) {
      return absl::ResourceExhaustedError(
          "another region would exceed CachingAllocatorOptions::limit");
    }
    uint64_t size = rounded;
    if (memory_space == 0 && rounded < next_size_) {
      size = std::max(rounded, RoundDown(std::min(next_size_, left)));
    }
    while (true) {
      absl::StatusOr<DeviceMemory> memory = Obtain(size, memory_space);
      if (memory.ok()) {
        if (size == next_size_) {
          next_size_ = std::min(2 * size, options_.largest_region);
        }
        return Insert({*memory, size, memory_space, 0, kNone});
      }
      if (size == rounded || !absl::IsResourceExhausted(memory.status())) {
        return std::move(memory).status();
      }
      size = std::max(rounded, RoundDown(size / 2));
      next_size_ = size;
    }
  }

  void SetChunk(uint32_t region, uint32_t chunk) {
    regions_[region].chunk = chunk;
  }

  // Removes a region and returns its memory, which the caller releases.
  DeviceMemory Remove(uint32_t index) {
    Region& region = regions_[index];
    region.chunk = 0;
    region.next_unused = unused_;
    unused_ = index;
    --count_;
    bytes_reserved_ -= static_cast<int64_t>(region.size);
    return region.memory;
  }

  // Releases memory to Source; logs a failure.
  void Release(DeviceMemory memory) {
    internal::GuardOrLog("deallocate",
                         [&] { return source_.Source::Deallocate(memory); });
  }
  // Does the same, and returns a failure.
  absl::Status ReleaseOrFail(DeviceMemory memory) {
    return source_.Source::Deallocate(memory);
  }

  // Returns whether the address of `memory` is in a region.
  bool Contains(DeviceMemory memory) const {
    for (const Region& region : regions_) {
      const uintptr_t distance =
          reinterpret_cast<uintptr_t>(memory.opaque()) -
          reinterpret_cast<uintptr_t>(region.memory.opaque());
      if (region.chunk != 0 && distance < region.size) return true;
    }
    return false;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Calls Source::Allocate and validates the result; catches exceptions.
  absl::StatusOr<DeviceMemory> Obtain(uint64_t size, int64_t memory_space) {
    absl::StatusOr<DeviceMemory> memory = [&]() -> decltype(memory) {
      TFPLUG_INTERNAL_TRY {
        return source_.Source::Allocate(size, memory_space);
      }
      TFPLUG_INTERNAL_CATCH_ALL { return internal::CurrentException(); }
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

  uint32_t Insert(const Region& region) {
    const uint32_t index = unused_;
    unused_ = regions_[index].next_unused;
    regions_[index] = region;
    ++count_;
    bytes_reserved_ += static_cast<int64_t>(region.size);
    peak_bytes_reserved_ = std::max(peak_bytes_reserved_, bytes_reserved_);
    return index;
  }

  Source& source_;
  CachingAllocatorOptions options_;
  uint64_t next_size_ = 0;
  std::vector<Region> regions_;
  uint32_t unused_ = kNone;
  size_t count_ = 0;
  int64_t bytes_reserved_ = 0;
  int64_t peak_bytes_reserved_ = 0;
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_HEAP_REGIONS_H_
