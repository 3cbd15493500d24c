// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_SIMD_CODE_H_
#define CPU_SIM_KERNELS_SIMD_CODE_H_

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>

#include "kernels/row_code.h"
#include "kernels/simd.h"

// Declarations for the files in this directory, which are compiled once for
// each level of x86-64. CPU_SIM_LEVEL is the level's name, and `Eigen` expands
// to a different name for each level. Every level has its own namespaces, and
// these files must define nothing outside them, because the linker keeps only
// one of several functions with the same name (a test checks this). Dynamic
// initializers are forbidden as well: they would run before a level is chosen.

// Precedes a loop whose output may alias an input exactly but never partially,
// so the compiler can omit overlap checks.
#ifdef __clang__
#define CPU_SIM_NO_OVERLAP _Pragma("clang loop vectorize(assume_safety)")
#else
#define CPU_SIM_NO_OVERLAP _Pragma("GCC ivdep")
#endif

namespace cpu_sim::CPU_SIM_LEVEL {

void Multiply(int64_t m, int64_t n, int64_t k, const GemmOperand& a,
              const GemmOperand& b, float* c, int64_t c_stride, GemmMode mode);
void Apply(const Epilogue& epilogue, int64_t rows, int64_t depth,
           const float* x, float* y);
void Attend(const AttentionSizes& sizes, int64_t begin, int64_t end,
            const float* q, const float* k, const float* v, const bool* mask,
            const float* bias, float* y, float* probabilities);

extern const void* const kHostLoops;  // a tfplug::HostLoops
extern const Conv2DCode kConv2D;
extern const Conv2DCode kDirect;
extern const DepthwiseCode kDepthwise;
extern const PoolCode kPool;
extern const BatchNormCode kBatchNorm;

namespace {  // NOLINT(google-build-namespaces): once for each level

// Eigen takes the exponential of each number below -88.723, also of -infinity,
// for that of -88.723: makes such results 0.
inline void ClearTiny(int64_t n, float* y) {
  CPU_SIM_NO_OVERLAP
  for (int64_t i = 0; i < n; ++i) y[i] = y[i] < 2.95e-39f ? 0 : y[i];
}

// The taps [begin, end) of a window that are inside the image.
struct Taps {
  int64_t begin;
  int64_t end;
};

inline Taps TapsInside(const Window& window, int64_t o) {
  const int64_t first = o * window.stride - window.pad;  // position of tap 0
  // Returns the number of taps before the position `distance` from the first.
  const auto before = [&](int64_t distance) {
    if (distance <= 0) return int64_t{0};
    return std::min(window.size,
                    (distance + window.dilation - 1) / window.dilation);
  };
  return {before(-first), before(window.in - first)};
}

inline int64_t TapPlace(const Window& window, int64_t o, int64_t tap) {
  return o * window.stride + tap * window.dilation - window.pad;
}

}  // namespace
}  // namespace cpu_sim::CPU_SIM_LEVEL

#endif  // CPU_SIM_KERNELS_SIMD_CODE_H_
