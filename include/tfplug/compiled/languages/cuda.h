// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_LANGUAGES_CUDA_H_
#define TFPLUG_COMPILED_LANGUAGES_CUDA_H_

#include "absl/strings/str_cat.h"
#include "tfplug/compiled/language.h"
#include "tfplug/compiled/languages/c_parts.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace compiled_internal {

// CUDA C++ and HIP, or, without their compilers, a loop over the items in each
// phase.
inline constexpr char kCudaPrelude[] = R"code(
#if defined(__CUDACC__) || defined(__HIP__)
#define FN __device__ static inline
#define f32_of_bits(x) __uint_as_float(x)
#define bits_of_f32(x) __float_as_uint(x)
#define f64_of_bits(x) __longlong_as_double((long long)(x))
#define bits_of_f64(x) ((u64)__double_as_longlong(x))
#define MATH32(name) name##f
#define MATH64(name) name
#define UNROLL _Pragma("unroll")
#define FOR_ITEMS(n) { const int item = (int)threadIdx.x; if (item < (n)) {
#define PER_ITEM(type, x) type x
#define AT(x) x
#define SHARED(type, x, n) __shared__ type x[n]
#define SYNC __syncthreads();
#else
#define FN static inline
FN f32 f32_of_bits(u32 x) { f32 y; __builtin_memcpy(&y, &x, 4); return y; }
FN u32 bits_of_f32(f32 x) { u32 y; __builtin_memcpy(&y, &x, 4); return y; }
FN f64 f64_of_bits(u64 x) { f64 y; __builtin_memcpy(&y, &x, 8); return y; }
FN u64 bits_of_f64(f64 x) { u64 y; __builtin_memcpy(&y, &x, 8); return y; }
extern "C" float lgammaf_r(float, int*) throw();
extern "C" double lgamma_r(double, int*) throw();
FN f32 tf_lgammaf(f32 x) { int sign; return lgammaf_r(x, &sign); }
FN f64 tf_lgamma(f64 x) { int sign; return lgamma_r(x, &sign); }
#define __builtin_lgammaf tf_lgammaf
#define __builtin_lgamma tf_lgamma
#define __builtin_rsqrtf(x) (1 / __builtin_sqrtf(x))
#define __builtin_rsqrt(x) (1 / __builtin_sqrt(x))
#define __builtin_fmaf(a, b, c) ((a) * (b) + (c))
#define __builtin_fma(a, b, c) ((a) * (b) + (c))
#define MATH32(name) __builtin_##name##f
#define MATH64(name) __builtin_##name
#define UNROLL
#endif
)code";

inline constexpr char kCudaKernel[] = R"code(
typedef struct {
$FIELDS} Parameters;
#define POINTER(k) char* p##k,
#if defined(__CUDACC__) || defined(__HIP__)
extern "C" __global__ __launch_bounds__(GROUP) void $ENTRY(
    $POINTERSconst Parameters p) {
const idx group = (idx)blockIdx.x;
#else
extern "C" {
extern const int $ENTRY_pointers, $ENTRY_parameters_size;
const int $ENTRY_pointers = $COUNT;
const int $ENTRY_parameters_size = sizeof(Parameters);
}
#undef POINTER
#define POINTER(k) char* const p##k = *(char**)arguments[k];
extern "C" void $ENTRY(const unsigned* group_index, void** arguments) {
const idx group = (idx)*group_index;
$POINTERS
const Parameters p = *(const Parameters*)arguments[$COUNT];
#endif
$BODY}
)code";

inline Language* MakeCuda(bool runs_groups) {
  auto* made = new Language;
  made->prelude = absl::StrCat(kTypes + 1, kCudaPrelude + 1, kGnuVectors + 1,
                               kItemLoops + 1);
  made->kernel = kCudaKernel + 1;
  made->pointer = "POINTER($K) ";
  made->operand = "$T* $X = ($T*)(p$K);\n";
  made->f32_function = "MATH32($F)";
  made->f64_function = "MATH64($F)";
  made->has_vectors = true;
  made->runs_groups = runs_groups;
  return made;
}

}  // namespace compiled_internal

// Returns CUDA C++, which is also HIP: `extern "C" __global__ void entry(char*
// p0, ..., Parameters p)`. The same source is Cpp() if neither __CUDACC__ nor
// __HIP__ is defined.
inline const Language& Cuda() {
  static const Language* const language = compiled_internal::MakeCuda(false);
  return *language;
}

// Returns C++17 of GNU's compilers for the host: `extern "C" void entry(const
// unsigned* group, void** arguments)` runs all items of the group `*group`;
// `arguments` points to each argument, as in cuLaunchKernel. The constants
// `entry_pointers` and `entry_parameters_size` describe the arguments.
inline const Language& Cpp() {
  static const Language* const language = compiled_internal::MakeCuda(true);
  return *language;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_LANGUAGES_CUDA_H_
