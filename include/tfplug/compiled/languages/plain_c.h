// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_LANGUAGES_PLAIN_C_H_
#define TFPLUG_COMPILED_LANGUAGES_PLAIN_C_H_

#include "absl/strings/str_cat.h"
#include "tfplug/compiled/language.h"
#include "tfplug/compiled/languages/c_parts.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace compiled_internal {

inline constexpr char kPlainCPrelude[] = R"code(
#define FN static inline
#define UNROLL
FN f32 f32_of_bits(u32 x) { union { u32 n; f32 r; } y; y.n = x; return y.r; }
FN u32 bits_of_f32(f32 x) { union { u32 n; f32 r; } y; y.r = x; return y.n; }
FN f64 f64_of_bits(u64 x) { union { u64 n; f64 r; } y; y.n = x; return y.r; }
FN u64 bits_of_f64(f64 x) { union { u64 n; f64 r; } y; y.r = x; return y.n; }
)code";

inline constexpr char kPlainCVectors[] = R"code(
typedef struct { f32 x[16]; } VECTOR_f32;
typedef struct { f64 x[8]; } VECTOR_f64;
#define LOAD_f32(p) (*(const VECTOR_f32*)(p))
#define LOAD_f64(p) (*(const VECTOR_f64*)(p))
#define STORE_f32(y, p) (*(VECTOR_f32*)(p) = (y))
#define STORE_f64(y, p) (*(VECTOR_f64*)(p) = (y))
#define ADD_PRODUCT_f32(c, a, b) \
  for (int j = 0; j < 16; ++j) (c).x[j] += (a) * (b).x[j]
#define ADD_PRODUCT_f64(c, a, b) \
  for (int j = 0; j < 8; ++j) (c).x[j] += (a) * (b).x[j]
)code";

inline constexpr char kPlainCKernel[] = R"code(
typedef struct {
$FIELDS} Parameters;
void $ENTRY(const unsigned* group_index, void** arguments) {
const idx group = (idx)*group_index;
$POINTERSconst Parameters p = *(const Parameters*)arguments[$COUNT];
$BODY}
)code";

}  // namespace compiled_internal

// Returns C99 without a library and without extensions, for processors whose
// `int` and `float` have 32 bits: `void entry(const unsigned* group, void**
// arguments)` runs all items of the group `*group`; `arguments` points to each
// pointer, and at last to the parameters. The compiler must compute as IEEE 754
// does: no -ffast-math, and on x86 -mfpmath=sse.
inline const Language& PlainC() {
  static const Language* const language = [] {
    auto* made = new Language;
    made->prelude = absl::StrCat(
        kTypes + 1, compiled_internal::kPlainCPrelude + 1, kConversions + 1,
        compiled_internal::kPlainCVectors + 1, kItemLoops + 1);
    made->kernel = compiled_internal::kPlainCKernel + 1;
    made->pointer = "char* const p$K = *(char**)arguments[$K];\n";
    made->operand = "$T* $X = ($T*)(p$K);\n";
    made->functions = "";
    made->has_vectors = true;
    made->runs_groups = true;
    return made;
  }();
  return *language;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_LANGUAGES_PLAIN_C_H_
