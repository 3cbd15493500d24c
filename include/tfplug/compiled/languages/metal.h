// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_LANGUAGES_METAL_H_
#define TFPLUG_COMPILED_LANGUAGES_METAL_H_

#include "tfplug/compiled/language.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace compiled_internal {

inline constexpr char kMetalPrelude[] = R"code(
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32;
#define f32_of_bits(x) as_type<float>(x)
#define bits_of_f32(x) as_type<uint>(x)
#define FN static inline
#define EXACT
#define UNROLL
#define FOR_ITEMS(n) { const int item = (int)item_; if (item < (n)) {
#define END_ITEMS }}
#define PER_ITEM(type, x) type x
#define AT(x) x
#define SHARED(type, x, n) threadgroup type x[n]
#define SYNC threadgroup_barrier(mem_flags::mem_threadgroup);
)code";

inline constexpr char kMetalKernel[] = R"code(
struct Parameters {
$FIELDS};
[[max_total_threads_per_threadgroup(GROUP)]] kernel void $ENTRY(
    $POINTERSconstant Parameters& p [[buffer($COUNT)]],
    uint group_ [[threadgroup_position_in_grid]],
    uint item_ [[thread_position_in_threadgroup]]) {
const idx group = idx(group_);
$BODY}
)code";

}  // namespace compiled_internal

// Returns the Metal Shading Language, 2.3 or newer. Argument k is buffer k, and
// the parameters are the last one. There are no doubles: Supports must refuse
// them. Compile without fast math, and with -ffp-contract=off. No compiler of
// Metal has read this text yet: clang has, as C++.
inline const Language& Metal() {
  static const Language* const language = [] {
    auto* made = new Language;
    made->header = "#include <metal_stdlib>\nusing namespace metal;\n";
    made->prelude = compiled_internal::kMetalPrelude + 1;
    made->kernel = compiled_internal::kMetalKernel + 1;
    made->pointer = "device char* p$K [[buffer($K)]], ";
    made->operand = "device $T* $X = (device $T*)(p$K);\n";
    made->functions =
        "fabs floor ceil rint sqrt=precise::sqrt rsqrt=precise::rsqrt fma";
    return made;
  }();
  return *language;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_LANGUAGES_METAL_H_
