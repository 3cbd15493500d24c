// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_MATH_PRELUDE_H_
#define TFPLUG_COMPILED_MATH_PRELUDE_H_

#include <cstddef>
#include <cstdio>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "tfplug/compiled/math_coefficients.h"
#include "tfplug/compiled/math_functions.h"

#pragma GCC visibility push(hidden)

namespace tfplug::compiled_internal {

// Gives the meaning of a word of math_functions.h for 32 and 64 bits.
struct MathWord {
  const char *word, *narrow, *wide;
};
inline constexpr MathWord kMathWords[] = {
    {"$T", "f32", "f64"},
    {"$U", "u32", "u64"},
    {"$OF_BITS", "f32_of_bits", "f64_of_bits"},
    {"$BITS_OF", "bits_of_f32", "bits_of_f64"},
    {"$DIGITS", "23", "52"},
    {"$BIAS", "127", "1023"},
    {"$SIGN", "0x80000000u", "(u64(0x80000000u) << 32)"},
    {"$TAIL", "0xfffu", "0x7ffffffu"},
    {"$INF", "f32_of_bits(0x7f800000u)", "f64_of_bits(u64(0x7ff00000u) << 32)"},
    {"$NAN", "f32_of_bits(0x7fc00000u)", "f64_of_bits(u64(0x7ff80000u) << 32)"},
    // The least normal number, sqrt(1/2), and the least number after which all
    // are whole.
    {"$NORMAL", "1.17549435e-38$L", "2.2250738585072014e-308$L"},
    {"$HALF_ROOT", "0x3f3504f3u", "(u64(0x3fe6a09eu) << 32 | 0x667f3bcdu)"},
    {"$WHOLE", "8388608.0$L", "4503599627370496.0$L"},
    {"$EPSILON", "2.98023224e-8$L", "1.1102230246251565e-16$L"},
    {"$BIG", "1e4$L", "1e9$L"},
    {"$EXP_MOST", "88.7228394$L", "709.78271289338397$L"},
    {"$EXP_LEAST", "-104.0$L", "-746.0$L"},
    {"$ERFC_MOST", "10.1$L", "27.3$L"},
    {"$LN2_HEAD", "0.693145752$L", "0.69314718048553914$L"},
    {"$LN2_TAIL", "1.42860682e-6$L", "7.4406171100123968e-11$L"},
    {"$PI_2", "1.57079637$L", "1.5707963267948966$L"},
    {"$PI_2_TAIL", "-4.37113883e-8$L", "6.123233995736766e-17$L"},
    // Right angles of less than ANGLE_MOST are the sum of four numbers.
    {"$ANGLE_MOST", "256.0$L", "100000.0$L"},
    {"$ANGLE_1", "1.5703125$L", "1.5707963267341256$L"},
    {"$ANGLE_2", "0.000483751297$L", "6.077100506303966e-11$L"},
    {"$ANGLE_3", "7.54953362e-8$L", "2.0222662487111665e-21$L"},
    {"$ANGLE_4", "2.56334415e-12$L", "8.4784276603688996e-32$L"},
};

inline std::string TurnCases() {
  std::string text;
  for (size_t i = 0; i < std::size(kTurnWords); ++i) {
    absl::StrAppend(&text, "  case ", i + 2, ": return ", kTurnWords[i],
                    "u;\n");
  }
  return text;
}

// Returns the polynomial of `x`: "(c0 + x * (c1 + x * (c2)))".
inline std::string PolynomialText(absl::string_view name, bool is_wide,
                                  absl::string_view x) {
  const Polynomial* row = kPolynomials;
  while (name != row->name) ++row;
  const double* const from = is_wide ? row->wide : row->narrow;
  const size_t most = is_wide ? std::size(row->wide) : std::size(row->narrow);
  std::string text, ends;
  for (size_t i = 0; i < most && from[i] != 0; ++i) {
    char number[40];
    std::snprintf(number, sizeof(number), is_wide ? "%.17g" : "%.9g", from[i]);
    std::string literal = number;
    if (literal.find_first_of(".e") == literal.npos) literal += ".0";
    if (i > 0) absl::StrAppend(&text, " + ", x, " * ");
    absl::StrAppend(&text, "(", literal, "$L");
    ends += ")";
  }
  return text + ends;
}

// Returns the definition of a function, or "" if there is none of the name.
// Calls name_of(word) for each function that it calls.
template <class NameOf>
std::string MathFunction(absl::string_view name, bool is_wide,
                         const std::string& suffix, NameOf name_of) {
  absl::string_view rest;
  for (const MathText& row : kMathFunctions) {
    if (name == row.name) rest = row.text + 1;
  }
  const auto take_word = [&] {
    size_t n = 0;
    while (n < rest.size() && (absl::ascii_isalnum(rest[n]) || rest[n] == '_'))
      ++n;
    const absl::string_view word = rest.substr(0, n);
    rest.remove_prefix(n);
    return word;
  };
  constexpr absl::string_view kPoly = "POLY_";
  std::string text;
  while (!rest.empty()) {
    if (rest[0] == '@') {
      rest.remove_prefix(1);
      text += name_of(take_word());
    } else if (rest.substr(0, kPoly.size()) == kPoly) {
      rest.remove_prefix(kPoly.size());
      const absl::string_view word = take_word();
      const size_t end = rest.find(')');
      text += PolynomialText(word, is_wide, rest.substr(1, end - 1));
      rest.remove_prefix(end + 1);
    } else {
      text += rest[0];
      rest.remove_prefix(1);
    }
  }
  std::vector<std::pair<std::string, std::string>> words = {
      {"$TURN_CASES", TurnCases()}};
  for (const MathWord& word : kMathWords) {
    words.emplace_back(word.word, is_wide ? word.wide : word.narrow);
  }
  return absl::StrReplaceAll(absl::StrReplaceAll(text, words),
                             {{"$L", is_wide ? suffix : "f"}});
}

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_MATH_PRELUDE_H_
