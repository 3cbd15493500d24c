// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_PHILOX_H_
#define CPU_SIM_KERNELS_PHILOX_H_

#include <array>
#include <cstdint>

// Random bits that depend only on a key and a counter, equal to those of
// TensorFlow's own devices: Philox 4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011).
namespace cpu_sim {

inline constexpr int32_t kPhilox = 1;  // TensorFlow's id of the algorithm

using PhiloxBlock = std::array<uint32_t, 4>;

inline PhiloxBlock ToBlock(uint64_t low, uint64_t high) {
  return {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
          static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)};
}

inline uint64_t Join(uint32_t low, uint32_t high) {
  return uint64_t{high} << 32 | low;
}

// Returns the block of random bits of a counter.
inline PhiloxBlock Philox(PhiloxBlock counter, uint64_t key) {
  uint32_t low = static_cast<uint32_t>(key);
  uint32_t high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ low,
               static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ high,
               static_cast<uint32_t>(a)};
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
  return counter;
}

// Produces the blocks of consecutive counters.
class PhiloxStream {
 public:
  // Starts `skip` blocks after the 128-bit counter, given low half first.
  PhiloxStream(uint64_t key, const uint64_t* counter, uint64_t skip = 0)
      : key_(key), low_(counter[0] + skip), high_(counter[1]) {
    if (low_ < skip) ++high_;
  }

  PhiloxBlock Next() {
    const PhiloxBlock bits = Philox(ToBlock(low_, high_), key_);
    if (++low_ == 0) ++high_;
    return bits;
  }

 private:
  const uint64_t key_;
  uint64_t low_, high_;
};

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_PHILOX_H_
