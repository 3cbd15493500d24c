// The calls of the driver that the device makes.
//
// TODO: replace each by that of your vendor's driver. This stub keeps "device"
// memory on the host and computes at once, so that everything works before the
// hardware does. Once Malloc returns memory that the host cannot read, HostMap and
// HostReduce in backend.h crash: replace them at the same time.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace my_device::driver {

inline int CountDevices() { return 1; }

inline void* Malloc(uint64_t size) {
  void* memory = nullptr;
  return posix_memalign(&memory, 256, size) == 0 ? memory : nullptr;
}
inline void Free(void* memory) { std::free(memory); }
inline uint64_t TotalMemory() { return uint64_t{1} << 30; }

// Each takes a queue in a real driver, and returns before the work is done.
inline bool Copy(void* dst, const void* src, uint64_t size) {
  std::memmove(dst, src, size);
  return true;
}
inline bool Fill(void* dst, uint8_t value, uint64_t size) {
  std::memset(dst, value, size);
  return true;
}

}  // namespace my_device::driver
