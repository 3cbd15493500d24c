// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_CACHING_ALLOCATOR_H_
#define TFPLUG_DEVICE_CACHING_ALLOCATOR_H_

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <type_traits>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/device_memory.h"
#include "tfplug/base/internal/override.h"
#include "tfplug/device/allocator.h"
#include "tfplug/device/caching_allocator_options.h"
#include "tfplug/device/internal/heap.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace device_internal {

template <class Source>
constexpr bool HasUnifiedMemory() {
  static_assert(std::is_base_of_v<Allocator, Source>,
                "tfplug: the argument of tfplug::CachingAllocator must be "
                "derived from tfplug::Allocator");
  static_assert(!std::is_abstract_v<Source>,
                "tfplug: the argument of tfplug::CachingAllocator must "
                "override Allocate, Deallocate and Usage");
  constexpr bool kAllocates = internal::Overrides(&Source::AllocateUnified,
                                                  &Allocator::AllocateUnified);
  static_assert(
      kAllocates == internal::Overrides(&Source::DeallocateUnified,
                                        &Allocator::DeallocateUnified),
      "tfplug: override both AllocateUnified and DeallocateUnified, "
      "or neither");
  return kAllocates;
}

// Holds the Source of a CachingAllocator and forwards the hooks for memory that
// is not cached. It overrides the hooks of unified memory if and only if Source
// does, because the overrides determine which C slots are filled.
template <class Source, bool kUnified = HasUnifiedMemory<Source>()>
class CachingSource : public Allocator {
 public:
  // Can be constructed from the same arguments as Source.
  CachingSource() = default;
  template <class Device,
            class = std::enable_if_t<std::is_constructible_v<Source, Device&>>>
  explicit CachingSource(Device& device) : source_(device) {}

  absl::StatusOr<void*> AllocateHost(uint64_t size) override {
    return source_.Source::AllocateHost(size);
  }
  absl::Status DeallocateHost(void* memory) override {
    return source_.Source::DeallocateHost(memory);
  }

 protected:
  Source source_;
};

template <class Source>
class CachingSource<Source, true> : public CachingSource<Source, false> {
 public:
  using CachingSource<Source, false>::CachingSource;

  absl::StatusOr<void*> AllocateUnified(uint64_t size) override {
    return this->source_.Source::AllocateUnified(size);
  }
  absl::Status DeallocateUnified(void* memory) override {
    return this->source_.Source::DeallocateUnified(memory);
  }
};

}  // namespace device_internal

// An Allocator that obtains large regions from `Source`, the author's allocator
// that calls the driver, and divides them: best fit, with free neighbors
// merged. Regions stay cached until memory runs out. Use it on platforms with
// PlatformOptions::use_bfc_allocator off, where the device's allocator (RFC
// 257's "custom allocator") allocates every tensor:
//
//   class Device
//       : public tfplug::Device<Stream, tfplug::CachingAllocator<Memory>> {
//
// Source need not be fast. It is constructed as if it were the device's
// allocator, with `Device&` or without arguments. All other hooks are forwarded
// to it; the platform supports unified memory if and only if Source does.
//
// Order: memory can be allocated again as soon as it is deallocated, while work
// that uses it may still be queued. TensorFlow's BFC allocator does the same.
// This is safe because the work of the new owner runs later: a device has one
// compute stream, and TensorFlow makes its copy streams wait for it. A kernel
// that uses memory on a stream of its own must order that stream in the same
// way, or must not release the memory before its work is done.
//
// For the same reason, Source's Deallocate must wait for the work of the device
// unless the driver's function does so. It is called when memory runs out, by
// ReleaseFreeRegions, and when the device is destroyed.
//
// Threads: any, several at once; each object has one lock. Source's Allocate,
// Deallocate and Usage are called with the lock held, hence one at a time, and
// must not call the CachingAllocator.
template <class Source>
class CachingAllocator : public device_internal::CachingSource<Source> {
 public:
  using device_internal::CachingSource<Source>::CachingSource;

  absl::Status Init() override {
    if (absl::Status status = source_.Source::Init(); !status.ok()) {
      return status;
    }
    return heap_.SetOptions(OptionsOf(source_, 0));
  }

  // ---- SP_StreamExecutor -------------------------------------------------

  // Returns null memory for `size` 0. Memory outside memory space 0 is counted,
  // but not cached. The message of ResourceExhausted contains the memory in use
  // and the driver's message; other errors of Source are returned unchanged.
  absl::StatusOr<DeviceMemory> Allocate(uint64_t size,
                                        int64_t memory_space) override {
    if (ABSL_PREDICT_FALSE(size == 0)) return DeviceMemory();
    std::lock_guard<std::mutex> lock(mutex_);
    return heap_.Allocate(size, memory_space);
  }

  // Finds the allocation by its address, because TensorFlow does not store the
  // size. Returns INVALID_ARGUMENT, and does nothing, if there is no such
  // allocation.
  absl::Status Deallocate(DeviceMemory memory) override {
    if (ABSL_PREDICT_FALSE(memory.is_null())) return absl::OkStatus();
    std::lock_guard<std::mutex> lock(mutex_);
    return heap_.Deallocate(memory);
  }

  // Returns exact values for all fields. The bytes in use are the requests,
  // rounded up, plus remainders that were too small to be split off. Both
  // limits are CachingAllocatorOptions::limit.
  absl::StatusOr<AllocatorStats> Stats() override {
    std::lock_guard<std::mutex> lock(mutex_);
    return heap_.Stats();
  }

  // Returns Source's usage, with cached memory counted as free, and both values
  // capped by the limit.
  absl::StatusOr<MemoryUsage> Usage() override {
    std::lock_guard<std::mutex> lock(mutex_);
    absl::StatusOr<MemoryUsage> usage = source_.Source::Usage();
    if (!usage.ok()) return usage;
    const AllocatorStats stats = heap_.Stats();
    const auto limit = static_cast<int64_t>(heap_.limit());
    usage->total = std::min(usage->total, limit);
    usage->free =
        std::min({usage->free + stats.bytes_reserved - stats.bytes_in_use,
                  usage->total, limit - stats.bytes_in_use});
    return usage;
  }

  // ---- For the author ----------------------------------------------------

  Source& source() { return source_; }

  // Returns statistics for each power of two, smallest size first.
  std::vector<CachingSizeClass> SizeClasses() {
    std::lock_guard<std::mutex> lock(mutex_);
    return heap_.SizeClasses();
  }

  // Releases the regions without allocations to Source and returns their total
  // size in bytes. Allocate does this, too, when it finds no memory.
  uint64_t ReleaseFreeRegions() {
    std::lock_guard<std::mutex> lock(mutex_);
    return heap_.ReleaseFreeRegions();
  }

 private:
  using device_internal::CachingSource<Source>::source_;

  template <class S>
  static auto OptionsOf(S& source, int) -> decltype(source.CachingOptions()) {
    return source.CachingOptions();
  }
  template <class S>
  static CachingAllocatorOptions OptionsOf(S&, long) {  // NOLINT
    return {};
  }

  std::mutex mutex_;
  device_internal::CachingHeap<Source> heap_{source_};
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_CACHING_ALLOCATOR_H_
