// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_DISTRIBUTIONS_H_
#define CPU_SIM_KERNELS_DISTRIBUTIONS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/philox.h"

// Distributions of random numbers, on the device. Equal bits give the same
// numbers as on TensorFlow's own devices; a block of four words gives a group
// of numbers.
namespace cpu_sim {

// Uniform in [0, 1): the 23 low bits are the fraction of a number in [1, 2).
inline float ToUniform(uint32_t bits) {
  const uint32_t one_to_two = 0x3F800000 | (bits & 0x7FFFFF);
  float value;
  memcpy(&value, &one_to_two, sizeof(value));
  return value - 1;
}

// Two normally distributed numbers, by the Box-Muller method.
inline void ToNormal(uint32_t bits_0, uint32_t bits_1, float* y) {
  const float radius =
      std::sqrt(-2.0f * std::log(std::max(ToUniform(bits_0), 1.0e-7f)));
  const float angle = 2.0f * static_cast<float>(M_PI) * ToUniform(bits_1);
  y[0] = std::sin(angle) * radius;
  y[1] = std::cos(angle) * radius;
}

inline void FillUniform(float* y, int64_t size, const uint64_t* key,
                        const uint64_t* counter) {
  PhiloxStream stream(*key, counter);
  for (int64_t i = 0; i < size; i += 4) {
    const PhiloxBlock bits = stream.Next();
    for (int64_t k = 0; k < std::min<int64_t>(4, size - i); ++k) {
      y[i + k] = ToUniform(bits[k]);
    }
  }
}

inline void FillNormal(float* y, int64_t size, const uint64_t* key,
                       const uint64_t* counter) {
  PhiloxStream stream(*key, counter);
  for (int64_t i = 0; i < size; i += 4) {
    const PhiloxBlock bits = stream.Next();
    float normal[4];
    ToNormal(bits[0], bits[1], normal);
    ToNormal(bits[2], bits[3], normal + 2);
    std::copy_n(normal, std::min<int64_t>(4, size - i), y + i);
  }
}

// Normally distributed numbers within [-2, 2]. Each group of four numbers has
// its own blocks of random bits, more than it can ever need.
inline void FillTruncatedNormal(float* y, int64_t size, const uint64_t* key,
                                const uint64_t* counter) {
  constexpr uint64_t kBlocksPerGroup = 256;
  for (int64_t i = 0; i < size; i += 4) {
    PhiloxStream stream(*key, counter,
                        static_cast<uint64_t>(i / 4) * kBlocksPerGroup);
    const int64_t count = std::min<int64_t>(4, size - i);
    for (int64_t have = 0; have < count;) {
      const PhiloxBlock bits = stream.Next();
      for (int pair = 0; pair < 4; pair += 2) {
        float normal[2];
        ToNormal(bits[pair], bits[pair + 1], normal);
        for (const float value : normal) {
          if (have < count && std::abs(value) < 2) y[i + have++] = value;
        }
      }
    }
  }
}

// Random bits as a 4-byte integer, or an 8-byte one, low half first.
template <typename T>
void FillBits(T* y, int64_t size, const uint64_t* key,
              const uint64_t* counter) {
  constexpr int64_t kGroup = 16 / sizeof(T);
  PhiloxStream stream(*key, counter);
  for (int64_t i = 0; i < size; i += kGroup) {
    const PhiloxBlock bits = stream.Next();
    memcpy(y + i, bits.data(), sizeof(T) * std::min(kGroup, size - i));
  }
}

// Uniform in [low, low + range): the remainder of the bits modulo the range.
template <typename T, typename Unsigned>
void FillInteger(T* y, int64_t size, const uint64_t* key,
                 const uint64_t* counter, T low, Unsigned range) {
  FillBits(y, size, key, counter);
  for (int64_t i = 0; i < size; ++i) {
    y[i] = static_cast<T>(static_cast<Unsigned>(low) +
                          static_cast<Unsigned>(y[i]) % range);
  }
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_DISTRIBUTIONS_H_
