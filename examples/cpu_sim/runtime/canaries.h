// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_RUNTIME_CANARIES_H_
#define CPU_SIM_RUNTIME_CANARIES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace cpu_sim::rt {

// Finds work that writes beside its memory, or reads memory that nothing has
// written: each block lies between two canaries, and all of it is poisoned.
// Addresses are private ones. Thread-safe.
class Canaries {
 public:
  // Bytes on each side of a block: a multiple of the heap's alignment.
  static constexpr size_t kBytes = 1024;
  // Each byte of poison. A float of such bytes is -2.87e-16, an integer is
  // negative, and a bool is invalid.
  static constexpr uint8_t kPoison = 0xa5;

  // Poisons a block of `bytes` and its canaries. `block` follows the first one.
  void Place(uint8_t* block, size_t bytes);

  // Poisons the block again. Returns the first change of its canaries as text,
  // or "". Call it after all work on the block is done.
  std::string Remove(uint8_t* block);

 private:
  std::mutex mutex_;
  std::map<const uint8_t*, size_t> sizes_;
};

}  // namespace cpu_sim::rt

#endif  // CPU_SIM_RUNTIME_CANARIES_H_
