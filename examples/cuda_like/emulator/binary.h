// SPDX-License-Identifier: Apache-2.0
#ifndef CUDA_LIKE_EMULATOR_BINARY_H_
#define CUDA_LIKE_EMULATOR_BINARY_H_

#include <cstdint>

// The form of the emulated compiler's binaries: this header and a shared
// library. cuModuleLoadData gets no size.
namespace cuda_like::emulator {

inline constexpr char kMagic[8] = {'C', 'U', 'D', 'A', 'L', 'I', 'K', 'E'};

struct BinaryHeader {
  char magic[8];
  uint64_t size;  // of the shared library in bytes
};

}  // namespace cuda_like::emulator

#endif  // CUDA_LIKE_EMULATOR_BINARY_H_
