// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_RUNTIME_DEVICE_H_
#define CPU_SIM_RUNTIME_DEVICE_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "arena.h"
#include "canaries.h"
#include "heap.h"

namespace cpu_sim::rt {

class Machine;
class Stream;

// Simulates one accelerator. The Machine owns it; its streams and allocations
// must be released before it is destroyed. Thread-safe.
//
// It has three kinds of memory:
//
//   device   accessed by kernels; in strict mode the host may hold an address
//            but not dereference it
//   managed  accessed by the host and this device
//   host     ordinary memory, aligned for transfers
//
// Allocating 0 bytes returns null, and freeing null does nothing.
class Device {
 public:
  Device(Machine& machine, int ordinal, std::unique_ptr<Arena> memory,
         std::unique_ptr<Arena> managed_memory, bool has_canaries = false);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int ordinal() const { return ordinal_; }
  // Returns whether each block of device memory lies between canaries.
  bool has_canaries() const { return canaries_ != nullptr; }

  // Return RESOURCE_EXHAUSTED if no free range is large enough.
  absl::StatusOr<void*> Allocate(size_t bytes);
  absl::StatusOr<void*> AllocateManaged(size_t bytes);
  absl::StatusOr<void*> AllocateHost(size_t bytes);

  // Return INVALID_ARGUMENT unless the matching function returned `address`.
  absl::Status Free(void* address);
  absl::Status FreeManaged(void* address);
  void FreeHost(void* address);

  // Returns the statistics of device memory.
  absl::StatusOr<HeapStats> Stats() const;

  // Copy in the calling thread, without synchronizing with any stream.
  absl::Status CopyToDevice(void* device_dst, const void* host_src,
                            size_t bytes);
  absl::Status CopyToHost(void* host_dst, const void* device_src, size_t bytes);
  absl::Status CopyOnDevice(void* device_dst, const void* device_src,
                            size_t bytes);

  // Blocks until all work that is in this device's streams now has run. Returns
  // and clears the streams' first error.
  absl::Status Synchronize();

  // Returns the address at which this device's threads access a range of its
  // memory, or null for 0 bytes. INVALID_ARGUMENT unless all of the range is
  // memory of this device.
  absl::StatusOr<void*> ToPrivate(const void* address, size_t bytes) const;

  // Does the same as ToPrivate for the memory of any device of the machine.
  absl::StatusOr<void*> ToPrivateOfAny(const void* address, size_t bytes) const;

  // Returns INVALID_ARGUMENT if any byte of the range is memory of a device,
  // which the host must not access.
  absl::Status CheckHostRange(const void* address, size_t bytes) const;

 private:
  friend class Machine;
  friend class Stream;  // registers itself in streams_

  // Blocks until all work that is in this device's streams now has run. Returns
  // the streams' first error, and clears it if `clear`.
  absl::Status Await(bool clear);

  // Returns the private address of a range of this device's memory, or null.
  void* Find(const void* address, size_t bytes) const;

  Machine& machine_;
  const int ordinal_;
  const std::unique_ptr<Arena> memory_;
  const std::unique_ptr<Arena> managed_memory_;
  Heap heap_;
  Heap managed_heap_;
  const std::unique_ptr<Canaries> canaries_;  // null if memory has none
  std::mutex streams_mutex_;
  std::vector<Stream*> streams_;
};

}  // namespace cpu_sim::rt

#endif  // CPU_SIM_RUNTIME_DEVICE_H_
