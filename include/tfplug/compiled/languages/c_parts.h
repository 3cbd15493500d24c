// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_LANGUAGES_C_PARTS_H_
#define TFPLUG_COMPILED_LANGUAGES_C_PARTS_H_

#pragma GCC visibility push(hidden)

// Parts of preludes for languages that are like C.
namespace tfplug {

// The types of C, on processors whose `int` and `float` have 32 bits.
inline constexpr char kTypes[] = R"code(
typedef signed char i8; typedef short i16; typedef int i32;
typedef long long i64; typedef unsigned char u8; typedef unsigned short u16;
typedef unsigned u32; typedef unsigned long long u64;
typedef float f32; typedef double f64;
)code";

// The end of a prelude in C or C++: where it has not defined SYNC, the items of
// a group run one after the other. Each phase is a loop, which the compiler
// vectorizes, and a barrier is nothing.
inline constexpr char kItemLoops[] = R"code(
#ifndef SYNC
#ifdef __clang__
#define ITEM_LOOP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define ITEM_LOOP _Pragma("GCC ivdep")
#else
#define ITEM_LOOP
#endif
#define FOR_ITEMS(n) { const int items_ = (n) < GROUP ? (int)(n) : GROUP; \
  ITEM_LOOP for (int item = 0; item < items_; ++item) {
#define PER_ITEM(type, x) type x[GROUP]
#define AT(x) x[item]
#define SHARED(type, x, n) type x[n]
#define SYNC
#endif
#define END_ITEMS }}
#ifndef EXACT
#define EXACT
#endif
#ifdef ALIGNED
#elif defined(__GNUC__)
#define ALIGNED __attribute__((aligned(64)))
#else
#define ALIGNED
#endif
)code";

// Conversions in C; C++ has them.
inline constexpr char kConversions[] = R"code(
#define i8(x) ((i8)(x))
#define i16(x) ((i16)(x))
#define i32(x) ((i32)(x))
#define i64(x) ((i64)(x))
#define u8(x) ((u8)(x))
#define u16(x) ((u16)(x))
#define u32(x) ((u32)(x))
#define u64(x) ((u64)(x))
#define f32(x) ((f32)(x))
#define f64(x) ((f64)(x))
)code";

// Vectors of compilers that are like GNU's.
inline constexpr char kGnuVectors[] = R"code(
typedef f32 VECTOR_f32 __attribute__((vector_size(64), aligned(8)));
typedef f64 VECTOR_f64 __attribute__((vector_size(64), aligned(8)));
#define LOAD_f32(p) (*(const VECTOR_f32*)(p))
#define LOAD_f64(p) (*(const VECTOR_f64*)(p))
#define STORE_f32(x, p) (*(VECTOR_f32*)(p) = (x))
#define STORE_f64(x, p) (*(VECTOR_f64*)(p) = (x))
#define ADD_PRODUCT_f32(c, a, b) c += (a) * (b)
#define ADD_PRODUCT_f64(c, a, b) c += (a) * (b)
)code";

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_LANGUAGES_C_PARTS_H_
