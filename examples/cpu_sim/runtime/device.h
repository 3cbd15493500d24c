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
#include "heap.h"

namespace cpu_sim::rt {

class Machine;
class Stream;

// One simulated accelerator. Owned by its Machine; everything made on it must
// be gone before it. Thread-safe.
//
// It has three kinds of memory:
//
//   device   where its kernels work; the host may hold an address of it, but
//            (in strict mode) not look there
//   managed  both the host and this device may use it
//   host     plain memory, aligned for transfers
//
// Allocating 0 bytes gives null, and freeing null does nothing.
class Device {
 public:
  Device(Machine& machine, int ordinal, std::unique_ptr<Arena> memory,
         std::unique_ptr<Arena> managed_memory);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int ordinal() const { return ordinal_; }

  // RESOURCE_EXHAUSTED when no hole is large enough.
  absl::StatusOr<void*> Allocate(size_t bytes);
  absl::StatusOr<void*> AllocateManaged(size_t bytes);
  absl::StatusOr<void*> AllocateHost(size_t bytes);

  // INVALID_ARGUMENT when `address` is not what the matching function gave.
  absl::Status Free(void* address);
  absl::Status FreeManaged(void* address);
  void FreeHost(void* address);

  // The device memory's.
  absl::StatusOr<HeapStats> Stats() const;

  // Copies in the calling thread, beside all streams.
  absl::Status CopyToDevice(void* device_dst, const void* host_src,
                            size_t bytes);
  absl::Status CopyToHost(void* host_dst, const void* device_src, size_t bytes);
  absl::Status CopyOnDevice(void* device_dst, const void* device_src,
                            size_t bytes);

  // Blocks until all that is in this device's streams now has run. The first
  // error among them, which is thereby forgotten.
  absl::Status Synchronize();

  // Where this device's threads, and nobody else, find a range of its memory.
  // INVALID_ARGUMENT when not all of it is memory of this device. The address
  // of no bytes is null.
  absl::StatusOr<void*> ToPrivate(const void* address, size_t bytes) const;

  // The same for the memory of any device of the machine.
  absl::StatusOr<void*> ToPrivateOfAny(const void* address, size_t bytes) const;

  // OK unless the range lies in device memory, where the host may not look.
  absl::Status CheckHostRange(const void* address, size_t bytes) const;

 private:
  friend class Machine;
  friend class Stream;  // enters itself into streams_

  // Null when the range is not all this device's.
  void* Find(const void* address, size_t bytes) const;

  Machine& machine_;
  const int ordinal_;
  const std::unique_ptr<Arena> memory_;
  const std::unique_ptr<Arena> managed_memory_;
  Heap heap_;
  Heap managed_heap_;
  std::mutex streams_mutex_;
  std::vector<Stream*> streams_;
};

}  // namespace cpu_sim::rt

#endif  // CPU_SIM_RUNTIME_DEVICE_H_
