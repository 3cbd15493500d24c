// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_LANGUAGES_OPENCL_C_H_
#define TFPLUG_COMPILED_LANGUAGES_OPENCL_C_H_

#include "absl/strings/str_cat.h"
#include "tfplug/compiled/language.h"
#include "tfplug/compiled/languages/c_parts.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace compiled_internal {

inline constexpr char kOpenClPrelude[] = R"code(
#pragma OPENCL FP_CONTRACT OFF
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32;
#ifdef cl_khr_fp64
typedef double f64;
#define f64_of_bits(x) as_double(x)
#define bits_of_f64(x) as_ulong(x)
#endif
#define f32_of_bits(x) as_float(x)
#define bits_of_f32(x) as_uint(x)
#define FN static inline
#define UNROLL
#define ALIGNED __attribute__((aligned(64)))
#define VECTOR_f32 float16
#define VECTOR_f64 double8
#define LOAD_f32(p) vload16(0, p)
#define LOAD_f64(p) vload8(0, p)
#define STORE_f32(x, p) vstore16(x, 0, p)
#define STORE_f64(x, p) vstore8(x, 0, p)
#define ADD_PRODUCT_f32(c, a, b) c = fma((float16)(a), b, c)
#define ADD_PRODUCT_f64(c, a, b) c = fma((double8)(a), b, c)
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

inline constexpr char kOpenClKernel[] = R"code(
typedef struct {
$FIELDS} Parameters;
__kernel __attribute__((reqd_work_group_size(ITEMS_PER_GROUP, 1, 1)))
void $ENTRY($POINTERSconst Parameters p) {
const idx group = (idx)get_group_id(0);
$BODY}
)code";

}  // namespace compiled_internal

// Returns OpenCL C 1.2: `__kernel void entry(__global char* p0, ..., Parameters
// p)`. On a CPU, the driver's groups have one item.
inline const Language& OpenClC() {
  static const Language* const language = [] {
    auto* made = new Language;
    made->prelude = absl::StrCat(compiled_internal::kOpenClPrelude + 1,
                                 kConversions + 1, kItemLoops + 1);
    made->kernel = compiled_internal::kOpenClKernel + 1;
    made->pointer = "__global char* p$K, ";
    made->operand = "__global $T* $X = (__global $T*)(p$K + p.o[$K]);\n";
    made->has_vectors = true;
    made->has_offsets = true;
    return made;
  }();
  return *language;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_LANGUAGES_OPENCL_C_H_
