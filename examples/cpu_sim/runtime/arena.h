// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_RUNTIME_ARENA_H_
#define CPU_SIM_RUNTIME_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace cpu_sim::rt {

// The memory of one simulated device.
//
//   device address    the address that users of the device hold
//   private address   the address that the device's own threads access
//
// With HostAccess::kNone these differ, and nothing is mapped at the device
// addresses: host code that dereferences one crashes at that instruction
// instead of racing with the device. There are inaccessible guard regions below
// and above, and a forked child has none of it.
//
// Pages cost nothing until they are written. Immutable and thread-safe.
class Arena {
 public:
  enum class HostAccess { kNone, kReadWrite };

  // The size of each guard region.
  static constexpr size_t kGuardBytes = size_t{1} << 16;

  // Rounds `bytes` up to whole pages.
  static absl::StatusOr<std::unique_ptr<Arena>> Create(size_t bytes,
                                                       HostAccess access);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Returns the first device address.
  void* base() const { return base_; }
  size_t size() const { return size_; }

  // Returns whether all of [address, address + bytes) is in this arena.
  bool Contains(const void* address, size_t bytes) const {
    // Unsigned: an address below the base is a huge offset.
    const uintptr_t offset = Bits(address) - Bits(base_);
    return offset <= size_ && bytes <= size_ - offset;
  }

  // Returns whether any byte of [address, address + bytes) is in this arena.
  bool Overlaps(const void* address, size_t bytes) const {
    if (bytes == 0) return false;
    const uintptr_t offset = Bits(address) - Bits(base_);
    return offset < size_ || Bits(base_) - Bits(address) < bytes;
  }

  // Returns the private address of a device address that Contains() accepts.
  void* ToPrivate(const void* address) const {
    return private_ + (Bits(address) - Bits(base_));
  }

 private:
  Arena(char* base, char* private_base, size_t size);

  static uintptr_t Bits(const void* address) {
    return reinterpret_cast<uintptr_t>(address);
  }

  char* const base_;
  char* const private_;
  const size_t size_;
  const int owner_;  // the process that created the arena
};

}  // namespace cpu_sim::rt

#endif  // CPU_SIM_RUNTIME_ARENA_H_
