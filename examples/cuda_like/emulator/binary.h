// SPDX-License-Identifier: Apache-2.0
#ifndef CUDA_LIKE_EMULATOR_BINARY_H_
#define CUDA_LIKE_EMULATOR_BINARY_H_

#include <cstdint>
#include <string_view>

// The form of the emulated compiler's binaries: this header and a shared
// library. cuModuleLoadData gets no size.
namespace cuda_like::emulator {

// Returns whether kernels are compiled for x86-64-v3 rather than for any
// processor of this kind: the vectors of 256 bits double the speed of simple
// kernels.
inline bool HasWideVectors() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

// Returns the first eight bytes of binaries that this processor can run.
inline std::string_view Magic() {
  return HasWideVectors() ? "CUDALIK3" : "CUDALIKE";
}

struct BinaryHeader {
  char magic[8];
  uint64_t size;  // of the shared library in bytes
};

}  // namespace cuda_like::emulator

#endif  // CUDA_LIKE_EMULATOR_BINARY_H_
