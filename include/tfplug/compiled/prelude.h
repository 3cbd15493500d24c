// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_PRELUDE_H_
#define TFPLUG_COMPILED_PRELUDE_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tfplug/compiled/program.h"

#pragma GCC visibility push(hidden)

// The text before a generated kernel: names for what the dialects spell
// differently, and functions that none of them has. Kernels use only these:
//
//   FOR_ITEMS(n) ... END_ITEMS  a phase: code that the first n items run
//   item, group                 the index of the item, and of its group
//   PER_ITEM(type, x); AT(x)    a variable of each item that outlives a phase
//   SHARED(type, x, n);         an array that the items of a group share
//   SYNC                        a barrier between phases
//
// A GPU runs the items at the same time. On a CPU, also with OpenCL, each phase
// is a loop over the items, which the compiler vectorizes, and a barrier is
// nothing; the driver sees groups of one item.
namespace tfplug::compiled_internal {

// Parts of the prelude that only some kernels need.
enum SourceNeeds : uint32_t {
  kNeedsHalf = 1,
  kNeedsBfloat16 = 2,
  kNeedsIntegerFunctions = 4,
  kNeedsFloatToInteger = 8,
};

inline constexpr char kOpenClPrelude[] = R"code(
#pragma OPENCL FP_CONTRACT OFF
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32;
#ifdef cl_khr_fp64
typedef double f64;
#define HAS_F64
#define f64_of_bits(x) as_double((u64)(x))
#define bits_of_f64(x) as_ulong(x)
#endif
#define f32_of_bits(x) as_float((u32)(x))
#define bits_of_f32(x) as_uint(x)
#define MATH32(name) name
#define MATH64(name) name
#define RSQRT32(x) rsqrt(x)
#define RSQRT64(x) rsqrt(x)
#define FMA32(a, b, c) fma(a, b, c)
#define FMA64(a, b, c) fma(a, b, c)
#define FN static inline
#define GLOBAL __global
#define UNROLL
#ifdef IS_CPU
#define ITEMS_PER_GROUP 1
#else
#define ITEMS_PER_GROUP GROUP
#define FOR_ITEMS(n) { const int item = (int)get_local_id(0); if (item < (n)) {
#define PER_ITEM(type, x) type x
#define AT(x) x
#define SHARED(type, x, n) __local type x[n]
#define SYNC barrier(CLK_LOCAL_MEM_FENCE);
#endif
)code";

// CUDA C++, or, without a CUDA compiler, a loop over the items in each phase.
inline constexpr char kCppPrelude[] = R"code(
typedef signed char i8; typedef short i16; typedef int i32; typedef long i64;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned u32;
typedef unsigned long u64; typedef float f32; typedef double f64;
#define HAS_F64
#define GLOBAL
#ifdef __CUDACC__
#define FN __device__ static inline
#define f32_of_bits(x) __uint_as_float((u32)(x))
#define bits_of_f32(x) __float_as_uint(x)
#define f64_of_bits(x) __longlong_as_double((long long)(x))
#define bits_of_f64(x) ((u64)__double_as_longlong(x))
#define MATH32(name) name##f
#define MATH64(name) name
#define RSQRT32(x) rsqrtf(x)
#define RSQRT64(x) rsqrt(x)
#define FMA32(a, b, c) fmaf(a, b, c)
#define FMA64(a, b, c) fma(a, b, c)
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
#define MATH32(name) __builtin_##name##f
#define MATH64(name) __builtin_##name
#define RSQRT32(x) (1 / __builtin_sqrtf(x))
#define RSQRT64(x) (1 / __builtin_sqrt(x))
#define FMA32(a, b, c) ((a) * (b) + (c))
#define FMA64(a, b, c) ((a) * (b) + (c))
#define UNROLL
#endif
)code";

// The items of a group, one after the other.
inline constexpr char kLoopPrelude[] = R"code(
#ifndef SYNC
#ifdef __clang__
#define ITEM_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define ITEM_LOOP _Pragma("GCC ivdep")
#endif
#define FOR_ITEMS(n) { const int items_ = (n) < GROUP ? (int)(n) : GROUP; \
  ITEM_LOOP for (int item = 0; item < items_; ++item) {
#define PER_ITEM(type, x) type x[GROUP]
#define AT(x) x[item]
#define SHARED(type, x, n) type x[n]
#define SYNC
#endif
#define END_ITEMS }}
)code";

// Numbers of 16 bits are stored as integers.
inline constexpr char kHalfFunctions[] = R"code(
FN f32 f32_of_f16(u16 h) {
  const u32 sign = (u32)(h & 0x8000) << 16, m = h & 0x7fff;
  const f32 tiny = (f32)m * 5.9604644775390625e-8f;
  return f32_of_bits(sign | (m < 0x400 ? bits_of_f32(tiny)
                             : m < 0x7c00 ? (m << 13) + 0x38000000
                             : 0x7f800000 | (m & 0x3ff) << 13));
}
FN u16 f16_of_f32(f32 x) {
  const u32 bits = bits_of_f32(x), sign = bits >> 16 & 0x8000;
  const u32 m = bits & 0x7fffffff;
  if (m > 0x7f800000) return (u16)(sign | 0x7e00);
  if (m >= 0x477ff000) return (u16)(sign | 0x7c00);
  if (m < 0x38800000) {
    return (u16)(sign | (u32)MATH32(rint)(f32_of_bits(m) * 16777216.0f));
  }
  return (u16)(sign | (m + 0xfff + (m >> 13 & 1) - 0x38000000) >> 13);
}
)code";
inline constexpr char kBfloat16Functions[] = R"code(
FN f32 f32_of_bf16(u16 h) { return f32_of_bits((u32)h << 16); }
FN u16 bf16_of_f32(f32 x) {
  const u32 bits = bits_of_f32(x);
  return x != x ? (u16)((bits >> 16 & 0x8000) | 0x7fc0)
                : (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
)code";

// Functions for each integer type $T with the unsigned type $U of $B bits.
inline constexpr char kIntegerFunctions[] = R"code(
FN $T $T_pow($T base, $T exponent) {
  if (exponent < 0) return base == 1 ? 1 : 0;
  $U result = 1, power = ($U)base;
  for (; exponent != 0; exponent /= 2) {
    if (exponent % 2 != 0) result *= power;
    power *= power;
  }
  return ($T)result;
}
FN $T $T_shl($T a, $T b) {
  return ($U)b >= $B ? ($T)0 : ($T)(($U)a << (($U)b & ($B - 1)));
}
FN $T $T_shr($T a, $T b) {
  return ($U)b < $B ? ($T)(a >> (b & ($B - 1))) : a < 0 ? ($T)-1 : ($T)0;
}
)code";
inline constexpr char kSignedDivision[] = R"code(
FN $T $T_div($T a, $T b) {
  return b == 0 ? 0 : b == -1 ? ($T)(0 - ($U)a) : a / b;
}
FN $T $T_rem($T a, $T b) { return b == 0 || b == -1 ? 0 : a % b; }
)code";
inline constexpr char kUnsignedDivision[] = R"code(
FN $T $T_div($T a, $T b) { return b == 0 ? 0 : a / b; }
FN $T $T_rem($T a, $T b) { return b == 0 ? 0 : a % b; }
)code";

// Functions for each float type $F.
inline constexpr char kFloatToInteger[] = R"code(
FN i32 i32_of_$F($F x) {
  return x >= ($F)-2147483648.0f && x < ($F)2147483648.0f ? (i32)x
                                                      : -2147483647 - 1;
}
FN i64 i64_of_$F($F x) {
  const $F limit = ($F)9223372036854775808.0f;
  return x >= -limit && x < limit ? (i64)x : (i64)((u64)1 << 63);
}
FN u64 u64_of_$F($F x) {
  const $F limit = ($F)9223372036854775808.0f;
  return x >= limit && x < 2 * limit ? (u64)(i64)(x - limit) + ((u64)1 << 63)
                                     : (u64)i64_of_$F(x);
}
)code";

// Returns the text before a kernel.
inline std::string Prelude(const Target& target, uint32_t needs) {
  std::string text = absl::StrCat(
      "#define GROUP ", target.group_size, "\n",
      target.is_cpu ? "#define IS_CPU\n" : "",
      target.dialect == Dialect::kOpenCl ? kOpenClPrelude + 1 : kCppPrelude + 1,
      kLoopPrelude + 1);
  if ((needs & kNeedsHalf) != 0) text += kHalfFunctions + 1;
  if ((needs & kNeedsBfloat16) != 0) text += kBfloat16Functions + 1;
  if ((needs & kNeedsIntegerFunctions) != 0) {
    for (const char* bits : {"32", "64"}) {
      const std::string u = absl::StrCat("u", bits),
                        i = absl::StrCat("i", bits);
      const auto add = [&](const char* code, const std::string& type) {
        text += absl::StrReplaceAll(code + 1,
                                    {{"$T", type}, {"$U", u}, {"$B", bits}});
      };
      for (const std::string& type : {i, u}) add(kIntegerFunctions, type);
      add(kSignedDivision, i);
      add(kUnsignedDivision, u);
    }
  }
  if ((needs & kNeedsFloatToInteger) != 0) {
    text += absl::StrReplaceAll(kFloatToInteger + 1, {{"$F", "f32"}});
    absl::StrAppend(&text, "#ifdef HAS_F64\n",
                    absl::StrReplaceAll(kFloatToInteger + 1, {{"$F", "f64"}}),
                    "#endif\n");
  }
  return text;
}

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_PRELUDE_H_
