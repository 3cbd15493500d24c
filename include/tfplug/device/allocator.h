// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_ALLOCATOR_H_
#define TFPLUG_DEVICE_ALLOCATOR_H_

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/device_memory.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/device/internal/allocator_state.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The alignment in bytes of the memory that Allocator::Allocate and
// AllocateHost return. TensorFlow 2.22 and newer abort on a smaller alignment
// ("SubAllocator must return memory aligned to at least 256 bytes"). Allocate
// may return memory of any alignment if TensorFlow's BFC allocator is off
// (PlatformOptions::use_bfc_allocator).
inline constexpr uint64_t kRequiredAlignment = 256;

// The fields of SP_AllocatorStats, all in bytes except num_allocs. Report only
// values that you have counted: users tune their programs with these values.
struct AllocatorStats {
  int64_t num_allocs = 0;
  int64_t bytes_in_use = 0;
  int64_t peak_bytes_in_use = 0;
  int64_t largest_alloc_size = 0;
  std::optional<int64_t> bytes_limit;
  int64_t bytes_reserved = 0;
  int64_t peak_bytes_reserved = 0;
  std::optional<int64_t> bytes_reservable_limit;
  int64_t largest_free_block_bytes = 0;
};

// Device memory in bytes, as the driver reports it.
struct MemoryUsage {
  int64_t free = 0;
  int64_t total = 0;
};

// The memory functions of SP_StreamExecutor. Each device has one allocator. It
// is constructed right after the Device, with `Device&` if there is such a
// constructor, otherwise without arguments, and destroyed right before the
// Device.
//
// Threads: any. With PlatformOptions::use_bfc_allocator (the default)
// TensorFlow allocates large blocks and divides them itself; without it,
// TensorFlow calls Allocate for each tensor.
class Allocator {
 public:
  virtual ~Allocator() = default;

  // Is called once after construction. If it fails, so does create_device.
  virtual absl::Status Init() { return absl::OkStatus(); }

  // ---- SP_StreamExecutor -------------------------------------------------

  // allocate: returns `size` bytes of device memory, aligned to
  // kRequiredAlignment; `memory_space` is 0 in every release so far. Return
  // ResourceExhausted (or throw std::bad_alloc) if memory has run out; the
  // user then sees this error. Failures are logged, because the C slot has no
  // status: of failures in a row the first, second, fourth, eighth and so on.
  // Memory that is not aligned is released and counts as a failure.
  virtual absl::StatusOr<DeviceMemory> Allocate(uint64_t size,
                                                int64_t memory_space) = 0;

  // deallocate: releases memory, which is never null. The C slots that release
  // memory have no status: a failure of this hook, of DeallocateHost or of
  // DeallocateUnified is logged and otherwise ignored.
  virtual absl::Status Deallocate(DeviceMemory memory) = 0;

  // host_memory_allocate: returns host memory for copies between host and
  // device, aligned to kRequiredAlignment, page-locked if the driver supports
  // that. Memory that is not aligned is released and counts as a failure.
  // Default: ordinary memory, aligned to 256 bytes.
  virtual absl::StatusOr<void*> AllocateHost(uint64_t size) {
    constexpr uint64_t kMask = kRequiredAlignment - 1;
    if (size > UINT64_MAX - kMask) return OutOfHostMemory(size);
    void* memory =
        std::aligned_alloc(kRequiredAlignment, (size + kMask) & ~kMask);
    if (memory == nullptr && size != 0) return OutOfHostMemory(size);
    return memory;
  }
  // host_memory_deallocate: releases memory that AllocateHost returned; it is
  // never null. Default: std::free.
  virtual absl::Status DeallocateHost(void* memory) {
    std::free(memory);
    return absl::OkStatus();
  }

  // unified_memory_allocate, unified_memory_deallocate: allocate and release
  // memory that has one address for host and devices. Override both or neither;
  // overriding both sets SP_Platform::supports_unified_memory. Default: null.
  virtual absl::StatusOr<void*> AllocateUnified(uint64_t /*size*/) {
    return absl::UnimplementedError("override Allocator::AllocateUnified");
  }
  virtual absl::Status DeallocateUnified(void* /*memory*/) {
    return absl::UnimplementedError("override Allocator::DeallocateUnified");
  }

  // get_allocator_stats: returns the statistics of this allocator. Default:
  // reports that there are no statistics.
  virtual absl::StatusOr<AllocatorStats> Stats() {
    return absl::UnimplementedError("override Allocator::Stats");
  }

  // device_memory_usage: returns the device's free and total memory, from which
  // TensorFlow computes the size of its BFC allocator. Thread: first use; any
  // for later queries.
  virtual absl::StatusOr<MemoryUsage> Usage() = 0;

 private:
  friend struct internal::Access;

  static absl::Status OutOfHostMemory(uint64_t size) {
    return absl::ResourceExhaustedError("out of host memory allocating " +
                                        std::to_string(size) + " bytes");
  }

  device_internal::AllocatorState state_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_ALLOCATOR_H_
