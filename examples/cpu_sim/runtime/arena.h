// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_RUNTIME_ARENA_H_
#define CPU_SIM_RUNTIME_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace cpu_sim::rt {

// The memory of one simulated device: one anonymous file, mapped twice.
//
//   device address    what the device's users hold and pass around
//   private address   where only the device's own threads read and write
//
// With HostAccess::kNone the device addresses are mapped PROT_NONE: a host
// that follows one crashes at that instruction, as it would (or should) with
// a real card, instead of racing with the device.
//
// Pages cost nothing until they are written. Immutable once made, so every
// member function may be called from any thread.
class Arena {
 public:
  enum class HostAccess { kNone, kReadWrite };

  // `bytes` is rounded up to whole pages.
  static absl::StatusOr<std::unique_ptr<Arena>> Create(size_t bytes,
                                                       HostAccess access);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // The first device address.
  void* base() const { return base_; }
  size_t size() const { return size_; }

  // Whether all of [address, address + bytes) is this arena's.
  bool Contains(const void* address, size_t bytes) const {
    // Unsigned: an address below the base is a huge offset.
    const uintptr_t offset = Bits(address) - Bits(base_);
    return offset <= size_ && bytes <= size_ - offset;
  }

  // The private address of a device address that Contains() accepts.
  void* ToPrivate(const void* address) const {
    return private_ + (Bits(address) - Bits(base_));
  }

 private:
  Arena(void* base, char* private_base, size_t size)
      : base_(base), private_(private_base), size_(size) {}

  static uintptr_t Bits(const void* address) {
    return reinterpret_cast<uintptr_t>(address);
  }

  void* const base_;
  char* const private_;
  const size_t size_;
};

}  // namespace cpu_sim::rt

#endif  // CPU_SIM_RUNTIME_ARENA_H_
