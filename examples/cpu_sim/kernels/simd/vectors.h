// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_SIMD_VECTORS_H_
#define CPU_SIM_KERNELS_SIMD_VECTORS_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

// Vectors of floats of the level's width, for the files in this directory.
namespace cpu_sim::CPU_SIM_LEVEL {
namespace {

#if defined(__AVX512F__)
constexpr int kWidth = 16;
#elif defined(__AVX2__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif

template <int lanes>
struct VectorOf {
  typedef float Type __attribute__((vector_size(lanes * sizeof(float))));
};
template <int lanes>
using Vector = typename VectorOf<lanes>::Type;

template <int lanes>
Vector<lanes> Load(const float* from) {
  Vector<lanes> vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}

template <int lanes>
void Store(const Vector<lanes>& vector, float* to) {
  std::memcpy(to, &vector, sizeof(vector));
}

}  // namespace
}  // namespace cpu_sim::CPU_SIM_LEVEL

#endif  // CPU_SIM_KERNELS_SIMD_VECTORS_H_
