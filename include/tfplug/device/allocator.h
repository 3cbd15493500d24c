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

namespace tfplug {

// What SP_AllocatorStats tells; all in bytes but num_allocs. Report what was
// counted, or override nothing: invented figures mislead whoever tunes by them.
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

// Device memory in bytes, as the driver tells it.
struct MemoryUsage {
  int64_t free = 0;
  int64_t total = 0;
};

// The memory functions of SP_StreamExecutor. One object per device, made right
// after the Device, with `Device&` if there is such a constructor, else with
// nothing; it is destroyed right before the Device.
//
// Threads: any, several at once. With PlatformOptions::use_bfc_allocator (the
// default) core takes large blocks and divides them itself; without it each
// tensor comes here.
class Allocator {
 public:
  virtual ~Allocator() = default;

  // Called once after construction; a failure fails create_device.
  virtual absl::Status Init() { return absl::OkStatus(); }

  // ---- SP_StreamExecutor -------------------------------------------------

  // allocate. `size` is in bytes; `memory_space` is 0 in every release so far.
  // Memory must be aligned to 64 bytes at least. ResourceExhausted (or
  // std::bad_alloc) says that memory is out: core tells its user so. Any other
  // failure is logged too, since the C slot has no status.
  virtual absl::StatusOr<DeviceMemory> Allocate(uint64_t size,
                                                int64_t memory_space) = 0;

  // deallocate. Null memory never comes here. The C slots that give memory back
  // have no status: a failure of this and of the two below is logged.
  virtual absl::Status Deallocate(DeviceMemory memory) = 0;

  // host_memory_allocate, host_memory_deallocate: host memory for copies
  // between host and device, page-locked where the driver can do that.
  // Default: ordinary memory, aligned to 64 bytes.
  virtual absl::StatusOr<void*> AllocateHost(uint64_t size) {
    if (size > UINT64_MAX - 63) return OutOfHostMemory(size);
    void* memory = std::aligned_alloc(64, (size + 63) / 64 * 64);
    if (memory == nullptr && size != 0) return OutOfHostMemory(size);
    return memory;
  }
  virtual absl::Status DeallocateHost(void* memory) {
    std::free(memory);
    return absl::OkStatus();
  }

  // unified_memory_allocate, unified_memory_deallocate: one address for host
  // and device. Override both, and SP_Platform::supports_unified_memory is set;
  // override neither, and the slots stay null.
  virtual absl::StatusOr<void*> AllocateUnified(uint64_t /*size*/) {
    return absl::UnimplementedError("no unified memory");
  }
  virtual absl::Status DeallocateUnified(void* /*memory*/) {
    return absl::UnimplementedError("no unified memory");
  }

  // get_allocator_stats. Default: none are kept.
  virtual absl::StatusOr<AllocatorStats> Stats() {
    return absl::UnimplementedError("no statistics are kept");
  }

  // device_memory_usage. Core sizes its BFC allocator by it.
  virtual absl::StatusOr<MemoryUsage> Usage() = 0;

 private:
  static absl::Status OutOfHostMemory(uint64_t size) {
    return absl::ResourceExhaustedError("out of host memory allocating " +
                                        std::to_string(size) + " bytes");
  }
};

}  // namespace tfplug

#endif  // TFPLUG_DEVICE_ALLOCATOR_H_
