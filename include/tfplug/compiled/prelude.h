// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_PRELUDE_H_
#define TFPLUG_COMPILED_PRELUDE_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tfplug/compiled/language.h"
#include "tfplug/compiled/math_prelude.h"
#include "tfplug/compiled/program.h"

#pragma GCC visibility push(hidden)

// The text before a generated kernel: the prelude of the language, and the
// functions that the kernel needs and the language lacks. They are written in
// the terms of language.h.
namespace tfplug::compiled_internal {

// Numbers of 16 bits are stored as integers.
inline constexpr char kHalfFunctions[] = R"code(
FN f32 f32_of_f16(u32 h) {
  const u32 sign = (h & 0x8000u) << 16, m = h & 0x7fffu;
  const f32 tiny = f32(m) * 5.9604644775390625e-8f;
  return f32_of_bits(sign | (m < 0x400u ? bits_of_f32(tiny)
                             : m < 0x7c00u ? (m << 13) + 0x38000000u
                             : 0x7f800000u | (m & 0x3ffu) << 13));
}
FN u16 f16_of_f32(f32 x) {
  const u32 bits = bits_of_f32(x), sign = bits >> 16 & 0x8000u;
  const u32 m = bits & 0x7fffffffu;
  if (m > 0x7f800000u) return u16(sign | 0x7e00u);
  if (m >= 0x477ff000u) return u16(sign | 0x7c00u);
  if (m < 0x38800000u) {
    return u16(sign | u32($rint(f32_of_bits(m) * 16777216.0f)));
  }
  return u16(sign | (m + 0xfffu + (m >> 13 & 1u) - 0x38000000u) >> 13);
}
)code";
inline constexpr char kBfloat16Functions[] = R"code(
FN f32 f32_of_bf16(u32 h) { return f32_of_bits(h << 16); }
FN u16 bf16_of_f32(f32 x) {
  const u32 bits = bits_of_f32(x);
  return x != x ? u16((bits >> 16 & 0x8000u) | 0x7fc0u)
                : u16((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
)code";

// Functions for each integer type $T with the unsigned type $U of $B bits.
inline constexpr char kIntegerFunctions[] = R"code(
FN $T $T_pow($T base, $T exponent) {
  if (exponent < 0) return $T(base == 1 ? 1 : 0);
  $U result = 1, power = $U(base);
  for (; exponent != 0; exponent /= 2) {
    if (exponent % 2 != 0) result *= power;
    power *= power;
  }
  return $T(result);
}
FN $T $T_shl($T a, $T b) {
  return $U(b) >= $B ? $T(0) : $T($U(a) << ($U(b) & ($B - 1)));
}
FN $T $T_shr($T a, $T b) {
  return $U(b) < $B ? $T(a >> (b & ($B - 1))) : a < 0 ? $T(-1) : $T(0);
}
)code";
inline constexpr char kSignedDivision[] = R"code(
FN $T $T_div($T a, $T b) {
  return b == 0 ? $T(0) : b == -1 ? $T(0 - $U(a)) : a / b;
}
FN $T $T_rem($T a, $T b) { return b == 0 || b == -1 ? $T(0) : a % b; }
)code";
inline constexpr char kUnsignedDivision[] = R"code(
FN $T $T_div($T a, $T b) { return b == 0 ? $T(0) : a / b; }
FN $T $T_rem($T a, $T b) { return b == 0 ? $T(0) : a % b; }
)code";

// Functions for each float type $F.
inline constexpr char kFloatToInteger[] = R"code(
FN i32 i32_of_$F($F x) {
  return x >= $F(-2147483648.0f) && x < $F(2147483648.0f) ? i32(x)
                                                          : -2147483647 - 1;
}
FN i64 i64_of_$F($F x) {
  const $F limit = $F(9223372036854775808.0f);
  return x >= -limit && x < limit ? i64(x) : i64(u64(1) << 63);
}
FN u64 u64_of_$F($F x) {
  const $F limit = $F(9223372036854775808.0f);
  return x >= limit && x < 2 * limit ? u64(i64(x - limit)) + (u64(1) << 63)
                                     : u64(i64_of_$F(x));
}
)code";

// Collects the parts of the prelude that a kernel needs.
class SourceParts {
 public:
  enum Part : uint32_t {
    kHalf = 1,
    kBfloat16 = 2,
    kIntegers = 4,
    kFloatToInteger32 = 8,
    kFloatToInteger64 = 16,
  };

  explicit SourceParts(const Target& target) : target_(target) {}

  const Language& language() const { return *target_.language; }
  void Add(Part part) { parts_ |= part; }

  // Returns the name of a function of floats. One that the language lacks
  // becomes part of the prelude.
  std::string Function(absl::string_view name, bool is_wide) {
    const Language& in = language();
    absl::string_view spelling = in.functions == "*" ? name : "";
    for (const absl::string_view word : absl::StrSplit(in.functions, ' ')) {
      const size_t equals = word.find('=');
      if (word.substr(0, equals) == name) {
        spelling = equals == word.npos ? name : word.substr(equals + 1);
      }
    }
    if (!spelling.empty()) {
      return absl::StrReplaceAll(is_wide ? in.f64_function : in.f32_function,
                                 {{"$F", spelling}});
    }
    const std::string own = absl::StrCat(is_wide ? "f64_" : "f32_", name);
    if (functions_.insert(own).second) {
      // Functions that this one calls come before it.
      const std::string text = MathFunction(
          name, is_wide, in.f64_suffix, [&](absl::string_view called) {
            return called == name ? own : Function(called, is_wide);
          });
      function_texts_ += text;
    }
    return own;
  }

  // Returns the text.
  std::string Prelude() {
    const std::string rint =
        (parts_ & kHalf) != 0 ? Function("rint", false) : "";
    std::string text = function_texts_;
    if ((parts_ & kHalf) != 0) {
      text += absl::StrReplaceAll(kHalfFunctions + 1, {{"$rint", rint}});
    }
    if ((parts_ & kBfloat16) != 0) text += kBfloat16Functions + 1;
    if ((parts_ & kIntegers) != 0) text += Integers();
    if ((parts_ & kFloatToInteger32) != 0) {
      text += absl::StrReplaceAll(kFloatToInteger + 1, {{"$F", "f32"}});
    }
    if ((parts_ & kFloatToInteger64) != 0) {
      text += absl::StrReplaceAll(kFloatToInteger + 1, {{"$F", "f64"}});
    }
    return absl::StrCat(language().header, "#define GROUP ", target_.group_size,
                        "\n", target_.is_cpu ? "#define IS_CPU\n" : "",
                        language().prelude, text);
  }

 private:
  static std::string Integers() {
    std::string text;
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
    return text;
  }

  const Target& target_;
  uint32_t parts_ = 0;
  std::set<std::string> functions_;
  std::string function_texts_;
};

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_PRELUDE_H_
