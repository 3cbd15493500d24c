// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_CACHING_ALLOCATOR_H_
#define TFPLUG_DEVICE_CACHING_ALLOCATOR_H_

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/device_memory.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/log.h"
#include "tfplug/device/allocator.h"
#include "tfplug/device/internal/heap.h"
#include "tfplug/device/internal/heap_source.h"

namespace tfplug {

// In bytes. A Source has others than these if it says so:
//
//   tfplug::CachingAllocatorOptions CachingOptions();  // asked once, after
//   Init
struct CachingAllocatorOptions {
  // Sizes are rounded up to a multiple of this, a power of two and 64 at least.
  // Memory is aligned to it, as far as what Source gives is.
  uint64_t rounding = 256;
  // What is asked of Source at once: first this much, each time twice as much
  // as before, up to the second. A request above that size gets what it needs.
  uint64_t first_region = uint64_t{2} << 20;
  uint64_t largest_region = uint64_t{256} << 20;
  // The most to take from Source. None: until Source has no more.
  std::optional<uint64_t> limit;
};

// An Allocator that takes large regions from `Source`, the author's own that
// talks to the driver, and divides them: best fit, free neighbours merged,
// nothing given back to the driver until it runs out. It is for platforms with
// PlatformOptions::use_bfc_allocator off, whose every tensor comes to the
// device's allocator, and makes RFC 257's custom allocator of one name:
//
//   class Device
//       : public tfplug::Device<Stream, tfplug::CachingAllocator<Memory>> {
//
// Memory is made as if it stood there itself, with `Device&` or with nothing,
// and need not be fast. All other hooks reach it; there is unified memory
// exactly where Source has it.
//
// Order: memory is handed out again as soon as it comes back, as core's BFC
// does too, while work that uses it may still be queued. That is right because
// the new owner's work is queued behind it: a device has one compute stream,
// and core makes its copy streams wait for that one. A kernel that uses memory
// on a stream of its own must order that stream the same way, or keep the
// memory.
//
// For the same reason Source's Deallocate must wait for the device's work where
// the driver's own function does not: it is called when memory is out, and at
// the end.
//
// Threads: any, several at once; one lock per device. Source's Allocate,
// Deallocate and Usage are called with it held: one at a time, and they must
// not call back.
template <class Source>
class CachingAllocator : public internal::CachingSource<Source> {
 public:
  using internal::CachingSource<Source>::CachingSource;

  ~CachingAllocator() override {
    heap_.RemoveAllRegions([&](DeviceMemory region) { GiveBack(region); });
  }

  absl::Status Init() override {
    if (absl::Status status = source_.Source::Init(); !status.ok()) {
      return status;
    }
    options_ = OptionsOf(source_, 0);
    if (options_.rounding < 64 ||
        (options_.rounding & (options_.rounding - 1)) != 0) {
      return absl::InvalidArgumentError(
          "CachingAllocatorOptions::rounding must be a power of two and 64 at "
          "least, not " +
          std::to_string(options_.rounding));
    }
    options_.largest_region =
        RoundDown(std::min(options_.largest_region, kLargest));
    next_region_ =
        std::min(RoundDown(options_.first_region), options_.largest_region);
    return absl::OkStatus();
  }

  // ---- SP_StreamExecutor -------------------------------------------------

  // Null memory for `size` 0. What is not in memory space 0 is not cached, but
  // counted. ResourceExhausted tells how the memory is used, and what the
  // driver said; other errors of Source's are passed on as they are.
  absl::StatusOr<DeviceMemory> Allocate(uint64_t size,
                                        int64_t memory_space) override {
    if (ABSL_PREDICT_FALSE(size == 0)) return DeviceMemory();
    std::lock_guard<std::mutex> lock(mutex_);
    if (ABSL_PREDICT_FALSE(size > kLargest)) {
      return OutOfMemory(size, "no address space is that large");
    }
    const uint64_t rounded = RoundUp(size);
    heap_.Reserve();
    uint32_t chunk = 0;
    if (ABSL_PREDICT_TRUE(memory_space == 0)) {
      chunk = heap_.TakeBestFit(rounded);
    }
    if (ABSL_PREDICT_FALSE(chunk == 0)) {
      absl::StatusOr<uint32_t> grown = Grow(size, rounded, memory_space);
      if (!grown.ok()) return std::move(grown).status();
      chunk = *grown;
    }
    return heap_.HandOut(chunk, rounded, size);
  }

  // By address alone: core forgets the rest. Memory that is not handed out (it
  // came back before, or never was ours) changes nothing: INVALID_ARGUMENT.
  absl::Status Deallocate(DeviceMemory memory) override {
    if (ABSL_PREDICT_FALSE(memory.is_null())) return absl::OkStatus();
    std::lock_guard<std::mutex> lock(mutex_);
    const uint32_t chunk = heap_.TakeBack(memory.opaque());
    if (ABSL_PREDICT_FALSE(chunk == 0)) return Stray(memory);
    if (ABSL_PREDICT_FALSE(heap_.MemorySpaceOf(chunk) != 0)) {
      return source_.Source::Deallocate(heap_.RemoveRegion(chunk));
    }
    return absl::OkStatus();
  }

  // All counted. In use is what nobody else can have: requests rounded up,
  // and what was too small to be split off. The limits are the option's.
  absl::StatusOr<AllocatorStats> Stats() override {
    std::lock_guard<std::mutex> lock(mutex_);
    AllocatorStats stats = heap_.Stats();
    if (options_.limit.has_value()) {
      stats.bytes_limit = static_cast<int64_t>(Limit());
      stats.bytes_reservable_limit = stats.bytes_limit;
    }
    return stats;
  }

  // What Source tells, and the free memory kept here is free too; with a limit,
  // as much of it as that leaves.
  absl::StatusOr<MemoryUsage> Usage() override {
    std::lock_guard<std::mutex> lock(mutex_);
    absl::StatusOr<MemoryUsage> usage = source_.Source::Usage();
    if (!usage.ok()) return usage;
    const AllocatorStats stats = heap_.Stats();
    const auto limit = static_cast<int64_t>(Limit());
    usage->total = std::min(usage->total, limit);
    usage->free =
        std::min({usage->free + stats.bytes_reserved - stats.bytes_in_use,
                  usage->total, limit - stats.bytes_in_use});
    return usage;
  }

  // ---- For the author ----------------------------------------------------

  Source& source() { return this->source_; }

  // Where the memory is, by powers of two, smallest first.
  std::vector<CachingSizeClass> SizeClasses() {
    std::lock_guard<std::mutex> lock(mutex_);
    return heap_.SizeClasses();
  }

  // Gives regions with nothing in use back to Source, and returns how many
  // bytes. An Allocate that finds no memory does this by itself.
  uint64_t ReleaseFreeRegions() {
    std::lock_guard<std::mutex> lock(mutex_);
    return ReleaseFree();
  }

 private:
  using internal::CachingSource<Source>::source_;

  // What still can be rounded up and counted in int64_t.
  static constexpr uint64_t kLargest = uint64_t{1} << 62;

  template <class S>
  static auto OptionsOf(S& source, int) -> decltype(source.CachingOptions()) {
    return source.CachingOptions();
  }
  template <class S>
  static CachingAllocatorOptions OptionsOf(S&, long) {  // NOLINT
    return {};
  }

  uint64_t RoundDown(uint64_t size) const {
    return size & ~(options_.rounding - 1);
  }
  uint64_t RoundUp(uint64_t size) const {
    return RoundDown(size + options_.rounding - 1);
  }
  uint64_t Limit() const {
    return std::min(options_.limit.value_or(kLargest), kLargest);
  }

  // A new region that holds `rounded` bytes; cold.
  absl::StatusOr<uint32_t> Grow(uint64_t size, uint64_t rounded,
                                int64_t memory_space) {
    heap_.ReserveRegion();
    absl::StatusOr<uint32_t> chunk = TryToGrow(rounded, memory_space);
    if (absl::IsResourceExhausted(chunk.status()) && ReleaseFree() != 0) {
      chunk = TryToGrow(rounded, memory_space);
    }
    if (absl::IsResourceExhausted(chunk.status())) {
      return OutOfMemory(size, chunk.status().message());
    }
    return chunk;
  }

  // Asks for a region of the usual size, then for smaller ones, down to
  // `rounded`. What could be had is where the next one starts.
  absl::StatusOr<uint32_t> TryToGrow(uint64_t rounded, int64_t memory_space) {
    const uint64_t left = Limit() - heap_.bytes_reserved();
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
        return heap_.AddRegion(*memory, region, memory_space);
      }
      if (region == rounded || !absl::IsResourceExhausted(memory.status())) {
        return std::move(memory).status();
      }
      region = std::max(rounded, RoundDown(region / 2));
      next_region_ = region;
    }
  }

  // Source::Allocate, checked: a status whatever it does.
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
          "the allocator under CachingAllocator gave null");
    }
    if (memory->size() < size) {
      const std::string got = std::to_string(memory->size());
      GiveBack(*memory);
      return absl::InternalError(
          "the allocator under CachingAllocator was asked for " +
          std::to_string(size) + " bytes and gave " + got);
    }
    return memory;
  }

  void GiveBack(DeviceMemory region) {
    internal::GuardOrLog("deallocate",
                         [&] { return source_.Source::Deallocate(region); });
  }

  uint64_t ReleaseFree() {
    return heap_.RemoveFreeRegions(
        [&](DeviceMemory region) { GiveBack(region); });
  }

  [[gnu::cold, gnu::noinline]] absl::Status OutOfMemory(
      uint64_t size, absl::string_view reason) const {
    const AllocatorStats stats = heap_.Stats();
    std::string message =
        "out of device memory allocating " + std::to_string(size) + " bytes: ";
    message += std::to_string(stats.bytes_in_use) + " bytes in use, " +
               std::to_string(stats.bytes_reserved) + " reserved in " +
               std::to_string(heap_.num_regions()) +
               (heap_.num_regions() == 1 ? " region" : " regions") +
               ", largest free block " +
               std::to_string(stats.largest_free_block_bytes);
    if (options_.limit.has_value()) {
      message += ", limit " + std::to_string(*options_.limit);
    }
    message.append(": ").append(reason.data(), reason.size());
    return absl::ResourceExhaustedError(message);
  }

  [[gnu::cold, gnu::noinline]] absl::Status Stray(DeviceMemory memory) const {
    char message[128];
    std::snprintf(message, sizeof(message),
                  "ignored: nothing is handed out at %p, which %s",
                  memory.opaque(),
                  heap_.Contains(memory.opaque())
                      ? "is this allocator's: freed twice, or not the start"
                      : "is not this allocator's");
    return absl::InvalidArgumentError(message);
  }

  std::mutex mutex_;
  internal::CachingHeap heap_;
  CachingAllocatorOptions options_;
  uint64_t next_region_ = options_.first_region;
};

}  // namespace tfplug

#endif  // TFPLUG_DEVICE_CACHING_ALLOCATOR_H_
