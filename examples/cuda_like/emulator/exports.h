// SPDX-License-Identifier: Apache-2.0
#ifndef CUDA_LIKE_EMULATOR_EXPORTS_H_
#define CUDA_LIKE_EMULATOR_EXPORTS_H_

#include "driver/functions.h"
#include "driver/types.h"

// Declares the functions that the emulated driver exports.
namespace cuda_like {
namespace emulator {

constexpr int kCudaVersion = 12000;
constexpr int kLeastPriority = 0, kGreatestPriority = -5;

}  // namespace emulator

#define CUDA_LIKE_EXPORT __attribute__((visibility("default")))

extern "C" CUDA_LIKE_EXPORT CUresult
cuGetProcAddress_v2(const char* symbol, void** function, int version,
                    cuuint64_t flags, CUdriverProcAddressQueryResult* found);

#define CUDA_LIKE_DECLARE(name, suffix, parameters) \
  extern "C" CUDA_LIKE_EXPORT CUresult name##suffix parameters;
CUDA_LIKE_DRIVER_FUNCTIONS(CUDA_LIKE_DECLARE)
#undef CUDA_LIKE_DECLARE

#define CUDA_LIKE_DECLARE(name, suffix, parameters) \
  extern "C" CUDA_LIKE_EXPORT nvrtcResult name##suffix parameters;
CUDA_LIKE_COMPILER_FUNCTIONS(CUDA_LIKE_DECLARE)
#undef CUDA_LIKE_DECLARE

#define CUDA_LIKE_DECLARE(name, parameters) \
  extern "C" CUDA_LIKE_EXPORT cublasStatus_t name parameters;
CUDA_LIKE_BLAS_FUNCTIONS(CUDA_LIKE_DECLARE)
#undef CUDA_LIKE_DECLARE

#define CUDA_LIKE_DECLARE(name, result, parameters) \
  extern "C" CUDA_LIKE_EXPORT result name parameters;
CUDA_LIKE_BLAS_TEXTS(CUDA_LIKE_DECLARE)
#undef CUDA_LIKE_DECLARE

}  // namespace cuda_like

#endif  // CUDA_LIKE_EMULATOR_EXPORTS_H_
