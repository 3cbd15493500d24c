// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_LANGUAGES_GLSL_H_
#define TFPLUG_COMPILED_LANGUAGES_GLSL_H_

#include "tfplug/compiled/language.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace compiled_internal {

inline constexpr char kGlslPrelude[] = R"code(
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_control_flow_attributes : require
#define i8 int8_t
#define i16 int16_t
#define i32 int
#define i64 int64_t
#define u8 uint8_t
#define u16 uint16_t
#define u32 uint
#define u64 uint64_t
#define f32 float
#define f64 double
#define f32_of_bits(x) uintBitsToFloat(x)
#define bits_of_f32(x) floatBitsToUint(x)
#define f64_of_bits(x) uint64BitsToDouble(x)
#define bits_of_f64(x) doubleBitsToUint64(x)
#define FN
#define EXACT precise
#define UNROLL [[unroll]]
#define FOR_ITEMS(n) { const int item = int(gl_LocalInvocationID.x); \
  if (item < (n)) {
#define END_ITEMS }}
#define PER_ITEM(type, x) type x
#define AT(x) x
#define SYNC memoryBarrierShared(); barrier();
#define ARRAY(T, size) \
  layout(buffer_reference, std430, buffer_reference_align = size) \
  buffer array_##T { T at[]; }; const uint SIZE_##T = size;
ARRAY(i8, 1) ARRAY(i16, 2) ARRAY(i32, 4) ARRAY(i64, 8)
ARRAY(u8, 1) ARRAY(u16, 2) ARRAY(u32, 4) ARRAY(u64, 8)
ARRAY(f32, 4) ARRAY(f64, 8)
)code";

inline constexpr char kGlslKernel[] = R"code(
#ifdef IS_WIDE
#define ELEMENT(x, T, i) array_##T(u64(x) + u64(i) * SIZE_##T).at[0]
#else
#define ELEMENT(x, T, i) x.at[i]
#endif
layout(local_size_x = GROUP) in;
layout(buffer_reference, std430, buffer_reference_align = 8)
    readonly buffer Arguments {
  u64 pointers[$COUNT];
$FIELDS};
layout(push_constant) uniform Push { Arguments p; };
$SHARED
void main() {
const idx group =
    idx(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
$BODY}
)code";

}  // namespace compiled_internal

// Returns GLSL for SPIR-V of Vulkan 1.2, whose entry is always `main`. A group
// is GROUP invocations. The device needs
// buffer addresses, integers of 8, 16 and 64 bits, and storage of 8 and 16
// bits; opcodes.def's errors also need correctly rounded divisions, and NaN,
// infinities and denormal numbers to be preserved.
//
// The only argument is a push constant of 8 bytes, the address of a block of
// memory aligned to 8: KernelArguments::pointers, 8 bytes each, and then
// KernelArguments::parameters.
inline const Language& Glsl() {
  static const Language* const language = [] {
    auto* made = new Language;
    made->header = "#version 460\n";
    made->prelude = compiled_internal::kGlslPrelude + 1;
    made->kernel = compiled_internal::kGlslKernel + 1;
    made->operand = "array_$T $X = array_$T(p.pointers[$K]);\n";
    made->element = "ELEMENT($X, $T, $I)";
    made->shared = "shared $T $X[$N];\n";
    made->functions =
        "fabs=abs floor ceil rint=roundEven sqrt rsqrt=inversesqrt fma";
    made->f64_suffix = "lf";
    return made;
  }();
  return *language;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_LANGUAGES_GLSL_H_
