// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_MATH_FUNCTIONS_H_
#define TFPLUG_COMPILED_MATH_FUNCTIONS_H_

#pragma GCC visibility push(hidden)

namespace tfplug::compiled_internal {

// The functions of floats for languages that lack them (Language::functions),
// within the errors that opcodes.def allows, in the terms of language.h. Numbers
// must be IEEE 754's, and +, -, * and / rounded correctly, for these errors.
//
// MathFunction (math_prelude.h) replaces $T, the type, $U, the unsigned integer
// of its size, other words in capitals after $, which depend on the type, and
//
//   @name      the name of a function, which becomes part of the source
//   POLY_name(x) the polynomial of math_coefficients.h
struct MathText {
  const char *name, *text;
};
inline constexpr MathText kMathFunctions[] = {
    // ---- Parts of numbers
    {"fabs", R"code(
FN $T @fabs($T x) { return $OF_BITS($BITS_OF(x) & ~$SIGN); }
)code"},
    {"copysign", R"code(
FN $T @copysign($T x, $T y) {
  return $OF_BITS(($BITS_OF(x) & ~$SIGN) | ($BITS_OF(y) & $SIGN));
}
)code"},
    // Returns x, with only so many bits that the square is exact.
    {"head", R"code(
FN $T @head($T x) { return $OF_BITS($BITS_OF(x) & ~$U($TAIL)); }
)code"},
    {"power2", R"code(
FN $T @power2(i32 k) { return $OF_BITS($U(k + $BIAS) << $DIGITS); }
)code"},
    // Returns x times 2 to the power k, which may be denormal or infinite.
    {"scale", R"code(
FN $T @scale($T x, i32 k) {
  const i32 first = k / 2;
  return x * @power2(first) * @power2(k - first);
}
)code"},
    // x > 0 is a number between sqrt(1/2) and sqrt(2) times a power of 2.
    {"exponent", R"code(
FN i32 @exponent($T x) {
  const i32 shift = x < $NORMAL ? $DIGITS : 0;
  const $U bits = $BITS_OF(x * @power2(shift)) - $HALF_ROOT;
  return i32($U(bits + ($U($BIAS) << $DIGITS)) >> $DIGITS) - $BIAS - shift;
}
)code"},
    {"mantissa", R"code(
FN $T @mantissa($T x) {
  const i32 k = @exponent(x);
  return @scale(x, -k);
}
)code"},
    {"floor", R"code(
FN $T @floor($T x) {
  const $T y = @rint(x);
  return y > x ? y - 1 : y;
}
)code"},
    {"ceil", R"code(
FN $T @ceil($T x) {
  const $T y = @rint(x);
  return y < x ? @copysign(y + 1, x) : y;
}
)code"},
    {"rint", R"code(
FN $T @rint($T x) {
  const $T y = @fabs(x);
  if (!(y < $WHOLE)) return x;
  EXACT const $T sum = y + $WHOLE;
  EXACT const $T z = sum - $WHOLE;
  return @copysign(z, x);
}
)code"},
    {"fma", R"code(
FN $T @fma($T x, $T y, $T z) { return x * y + z; }
)code"},
    {"fmod", R"code(
FN $T @fmod($T x, $T y) {
  const $T a = @fabs(x), b = @fabs(y);
  if (!(a < $INF && b > 0)) return $NAN;
  if (a < b) return x;
  const $U a_bits = $BITS_OF(a), b_bits = $BITS_OF(b);
  const $U one = $U(1) << $DIGITS;
  i32 a_exponent = i32(a_bits >> $DIGITS), b_exponent = i32(b_bits >> $DIGITS);
  u64 rest = u64(a_bits & (one - 1)), divisor = u64(b_bits & (one - 1));
  if (a_exponent == 0) a_exponent = 1; else rest += u64(one);
  if (b_exponent == 0) b_exponent = 1; else divisor += u64(one);
  rest %= divisor;
  i32 k = a_exponent - b_exponent;
  while (k > 0) {
    const i32 step = k < 63 - $DIGITS ? k : 63 - $DIGITS;
    rest = (rest << step) % divisor;
    k -= step;
  }
  return @copysign(@scale($T(rest), b_exponent - $BIAS - $DIGITS), x);
}
)code"},
    // ---- Roots
    {"sqrt", R"code(
FN $T @sqrt($T x) {
  if (!(x > 0)) return x == 0 ? x : $NAN;
  if (x == $INF) return x;
  const i32 half_exponent = @exponent(x) / 2;
  const $T m = @scale(x, -2 * half_exponent);
  $T y = $OF_BITS(($BITS_OF(m) >> 1) + ($U($BIAS) << ($DIGITS - 1)));
  for (i32 i = 0; i < 4; ++i) y = 0.5$L * (y + m / y);
  return @scale(y, half_exponent);
}
)code"},
    {"rsqrt", R"code(
FN $T @rsqrt($T x) { return 1 / @sqrt(x); }
)code"},
    // ---- Exponentials
    {"exp", R"code(
FN $T @exp($T x) {
  if (!(x < $EXP_MOST)) return x != x ? x : $INF;
  if (x < $EXP_LEAST) return $T(0);
  const $T k = @rint(x * 1.44269504088896341$L);
  EXACT const $T high = x - k * $LN2_HEAD;
  EXACT const $T r = high - k * $LN2_TAIL;
  return @scale(1 + (r + r * r * POLY_exp(r)), i32(k));
}
)code"},
    {"expm1", R"code(
FN $T @expm1($T x) {
  if (!(x < $EXP_MOST)) return x != x ? x : $INF;
  if (x < -40.0$L) return $T(-1);
  if (x == 0) return x;
  const $T k = @rint(x * 1.44269504088896341$L);
  EXACT const $T high = x - k * $LN2_HEAD;
  EXACT const $T r = high - k * $LN2_TAIL;
  const $T y = r + r * r * POLY_exp(r);
  if (k > 40) return @scale(1 + y, i32(k)) - 1;
  const $T power = @power2(i32(k));
  return power * y + (power - 1);
}
)code"},
    {"sinh", R"code(
FN $T @sinh($T x) {
  const $T a = @fabs(x), z = x * x;
  if (a < 1) return x + x * z * POLY_sinh(z);
  if (!(a < $EXP_MOST - 1)) {
    const $T root = @exp(0.5$L * a);
    return @copysign(0.5$L * root * root, x);
  }
  const $T y = @exp(a);
  return @copysign(0.5$L * y - 0.5$L / y, x);
}
)code"},
    {"cosh", R"code(
FN $T @cosh($T x) {
  const $T a = @fabs(x);
  if (!(a < $EXP_MOST - 1)) {
    const $T root = @exp(0.5$L * a);
    return 0.5$L * root * root;
  }
  const $T y = @exp(a);
  return 0.5$L * y + 0.5$L / y;
}
)code"},
    {"tanh", R"code(
FN $T @tanh($T x) {
  if (x != x) return x;
  const $T a = @fabs(x);
  if (!(a < 22)) return @copysign($T(1), x);
  const $T y = @expm1(2 * a);
  return @copysign(y / (y + 2), x);
}
)code"},
    // ---- Logarithms
    {"log", R"code(
FN $T @log($T x) {
  if (!(x > 0)) return x == 0 ? -$INF : $NAN;
  if (x == $INF) return x;
  const $T k = $T(@exponent(x)), f = @mantissa(x) - 1;
  const $T s = f / (2 + f), z = s * s, half_square = 0.5$L * f * f;
  const $T rest = s * (half_square + z * POLY_log(z)) + k * $LN2_TAIL;
  return k * $LN2_HEAD - ((half_square - rest) - f);
}
)code"},
    {"log1p", R"code(
FN $T @log1p($T x) {
  if (@fabs(x) < $EPSILON || x == $INF) return x;
  if (!(x > -1)) return x == -1 ? -$INF : $NAN;
  EXACT const $T y = 1 + x;
  EXACT const $T back = y - (x < 1 ? $T(1) : x);
  EXACT const $T rest = (x < 1 ? x : $T(1)) - back;
  return @log(y) + rest / y;
}
)code"},
    {"asinh", R"code(
FN $T @asinh($T x) {
  const $T a = @fabs(x), z = a * a;
  if (a > $BIG) return @copysign(@log(a) + 0.693147180559945309$L, x);
  return @copysign(@log1p(a + z / (1 + @sqrt(1 + z))), x);
}
)code"},
    {"acosh", R"code(
FN $T @acosh($T x) {
  if (!(x >= 1)) return $NAN;
  if (x > $BIG) return @log(x) + 0.693147180559945309$L;
  const $T y = x - 1;
  return @log1p(y + @sqrt(y * (y + 2)));
}
)code"},
    {"atanh", R"code(
FN $T @atanh($T x) {
  const $T a = @fabs(x);
  if (a == 1) return @copysign($INF, x);
  return @copysign(0.5$L * @log1p(2 * a / (1 - a)), x);
}
)code"},
    // Computes the logarithm with about 10 more bits.
    {"pow", R"code(
FN $T @pow($T x, $T y) {
  if (y == 0 || x == 1) return $T(1);
  if (y == 1 || x != x) return x;
  if (y != y) return y;
  const $T a = @fabs(x), half_y = 0.5$L * y;
  const i32 is_whole = i32(@rint(y) == y);
  const i32 is_odd = i32(is_whole != 0 && @rint(half_y) != half_y);
  const $T sign = @copysign($T(1), is_odd != 0 ? x : $T(1));
  if (a == 0 || a == $INF) {
    return sign * (i32(a == 0) == i32(y < 0) ? $INF : $T(0));
  }
  if (x < 0 && is_whole == 0) return $NAN;
  if (@fabs(y) == $INF) {
    return a == 1 ? $T(1) : i32(a > 1) == i32(y > 0) ? $INF : $T(0);
  }
  const $T k = $T(@exponent(a)), m = @mantissa(a), f = m - 1;
  EXACT const $T d = m + 1;
  EXACT const $T d_back = d - 1;
  EXACT const $T d_rest = m - d_back;
  const $T s_head = @head(f / d), d_head = @head(d);
  EXACT const $T d_tail = (d - d_head) + d_rest;
  EXACT const $T s_error = (f - s_head * d_head) - s_head * d_tail;
  const $T s_tail = s_error / d, s = s_head + s_tail, z = s * s;
  const $T k_ln2 = k * $LN2_HEAD, s2 = 2 * s_head;
  const $T rest = s * z * POLY_log(z) + 2 * s_tail + k * $LN2_TAIL;
  EXACT const $T sum = k_ln2 + s2;
  EXACT const $T sum_back = sum - k_ln2;
  EXACT const $T tail = (s2 - sum_back) + rest;
  EXACT const $T log_high = sum + tail;
  EXACT const $T log_back = log_high - sum;
  EXACT const $T log_low = tail - log_back;
  EXACT const $T p = y * log_high;
  if (!(@fabs(p) < 800.0$L)) return sign * (p > 0 ? $INF : $T(0));
  const $T y_head = @head(y), y_tail = y - y_head;
  const $T l_head = @head(log_high), l_tail = log_high - l_head;
  EXACT const $T p_rest =
      (((y_head * l_head - p) + y_head * l_tail) + y_tail * l_head) +
      y_tail * l_tail + y * log_low;
  const $T result = @exp(p);
  if (result == 0 || result == $INF) return sign * result;
  return sign * (result + result * p_rest);
}
)code"},
    // ---- Angles
    // Returns 32 bits of 1 / (2 pi), from bit p + 64 on.
    {"turn_word", R"code(
FN u32 @turn_table(i32 i) {
  switch (i) {
$TURN_CASES  }
  return 0u;
}
FN u64 @turn_word(i32 p) {
  const i32 i = (p + 64) / 32, shift = (p + 64) % 32;
  const u64 two = u64(@turn_table(i)) << 32 | u64(@turn_table(i + 1));
  return two >> (32 - shift) & u64(0xffffffffu);
}
)code"},
    // Returns bits 0 to 63 or, if `part` is 1, 64 to 127 after the point of a
    // large x / (2 pi).
    {"turns", R"code(
FN u64 @turns($T x, i32 part) {
  const $U bits = $BITS_OF(x) & ~$SIGN, one = $U(1) << $DIGITS;
  const i32 e = i32(bits >> $DIGITS) - $BIAS - $DIGITS;
  const u64 m = u64((bits & (one - 1)) | one), mask = u64(0xffffffffu);
  const u64 low = m & mask, high = m >> 32;
  u64 carry = u64(0), next = @turn_word(e + 160), result = u64(0);
  for (i32 d = 4; d >= 0; --d) {
    const u64 word = @turn_word(e + 32 * d);
    const u64 a = low * word, b = high * next;
    const u64 sum = (a & mask) + (b & mask) + carry;
    carry = (a >> 32) + (b >> 32) + (sum >> 32);
    if (d / 2 == part) result |= (sum & mask) << (d % 2 == 0 ? 32 : 0);
    next = word;
  }
  return result;
}
)code"},
    // Returns the sine of x plus `shift` right angles.
    {"sine", R"code(
FN $T @sine($T x, i32 shift) {
  if (!(@fabs(x) < $INF)) return $NAN;
  $T r;
  i32 q;
  if (@fabs(x) < $ANGLE_MOST) {
    const $T k = @rint(x * 0.636619772367581343$L);
    EXACT const $T r1 = x - k * $ANGLE_1;
    EXACT const $T r2 = r1 - k * $ANGLE_2;
    EXACT const $T r3 = r2 - k * $ANGLE_3;
    r = r3 - k * $ANGLE_4;
    q = i32(k);
  } else {
    const u64 high = @turns(x, 0), low = @turns(x, 1);
    const u64 quarter = (high + (u64(1) << 61)) >> 62;
    const $T fraction =
        $T(i64(high - (quarter << 62))) + $T(low) * 5.421010862427522e-20$L;
    const $T y = fraction * 3.4061215800865545e-19$L;
    r = x < 0 ? -y : y;
    q = x < 0 ? -i32(quarter) : i32(quarter);
  }
  q = (q + shift) & 3;
  const $T z = r * r;
  const $T y = (q & 1) == 0 ? r + r * z * POLY_sin(z)
                            : 1 - (0.5$L * z - z * z * POLY_cos(z));
  return (q & 2) == 0 ? y : -y;
}
)code"},
    {"sin", R"code(
FN $T @sin($T x) { return x == 0 ? x : @sine(x, 0); }
)code"},
    {"cos", R"code(
FN $T @cos($T x) { return @sine(x, 1); }
)code"},
    {"tan", R"code(
FN $T @tan($T x) { return x == 0 ? x : @sine(x, 0) / @sine(x, 1); }
)code"},
    {"small_asin", R"code(
FN $T @small_asin($T x) {
  const $T z = x * x;
  return x + x * z * POLY_asin(z);
}
)code"},
    {"asin", R"code(
FN $T @asin($T x) {
  const $T a = @fabs(x);
  if (!(a <= 1)) return $NAN;
  if (a < 0.5$L) return @small_asin(x);
  const $T y = 2 * @small_asin(@sqrt(0.5$L * (1 - a)));
  return @copysign($PI_2 - (y - $PI_2_TAIL), x);
}
)code"},
    {"acos", R"code(
FN $T @acos($T x) {
  const $T a = @fabs(x);
  if (!(a <= 1)) return $NAN;
  if (a < 0.5$L) return $PI_2 - (@small_asin(x) - $PI_2_TAIL);
  const $T y = 2 * @small_asin(@sqrt(0.5$L * (1 - a)));
  return x > 0 ? y : 2 * $PI_2 - (y - 2 * $PI_2_TAIL);
}
)code"},
    {"atan", R"code(
FN $T @atan($T x) {
  const $T a = @fabs(x);
  const $T part = a > 2.414213562373095$L ? $T(1)
                  : a > 0.414213562373095$L ? 0.5$L : $T(0);
  const $T r = part == 1 ? -1 / a : part == 0 ? a : (a - 1) / (a + 1);
  const $T z = r * r;
  const $T y = r + (r * z * POLY_atan(z) + part * $PI_2_TAIL);
  return @copysign(part * $PI_2 + y, x);
}
)code"},
    {"atan2", R"code(
FN $T @atan2($T y, $T x) {
  if (x != x || y != y) return x + y;
  const $T a = @fabs(x), b = @fabs(y);
  const $T t = b == 0 ? $T(0)
               : a == $INF && b == $INF ? 0.5$L * $PI_2 : @atan(b / a);
  const $T turned = 2 * $PI_2 - (t - 2 * $PI_2_TAIL);
  return @copysign(@copysign($T(1), x) < 0 ? turned : t, y);
}
)code"},
    // ---- Error and gamma functions
    // Returns erfc(x) for x > 0.7.
    {"erfc_tail", R"code(
FN $T @erfc_tail($T x) {
  if (x > $ERFC_MOST) return $T(0);
  const $T h = @head(x), t = (x - 3) / (x + 3);
  const $T rest = @exp((h - x) * (h + x)) * POLY_erfc(t) / (x + 1);
  return @exp(-h * h) * rest;
}
)code"},
    {"erf", R"code(
FN $T @erf($T x) {
  const $T a = @fabs(x), z = x * x;
  if (x != x) return x;
  if (a < 0.75$L) return x * POLY_erf(z);
  return @copysign(1 - @erfc_tail(a), x);
}
)code"},
    {"erfc", R"code(
FN $T @erfc($T x) {
  const $T a = @fabs(x), z = x * x;
  if (x != x) return x;
  if (a < 0.75$L) return 1 - x * POLY_erf(z);
  const $T tail = @erfc_tail(a);
  return x < 0 ? 2 - tail : tail;
}
)code"},
    // Returns lgamma(x) for x > 0.
    {"positive_lgamma", R"code(
FN $T @positive_lgamma($T x) {
  if (x > 8) {
    const $T w = 1 / x, z = w * w;
    return (x - 0.5$L) * (@log(x) - 1) +
           (0.418938533204672742$L + w * POLY_stirling(z));
  }
  $T y = x, product = $T(1);
  while (y >= 2.5$L) {
    y -= 1;
    product *= y;
  }
  const $T r = y < 0.5$L ? y : y < 1.5$L ? y - 1 : y - 2;
  const $T near = r * POLY_lgamma(r);
  if (y < 0.5$L) return near - @log(y * (y + 1));
  return y < 1.5$L ? near - @log(y) : near + @log(product);
}
)code"},
    {"lgamma", R"code(
FN $T @lgamma($T x) {
  const $T a = @fabs(x);
  if (!(a < $INF)) return a;
  if (a < $EPSILON * $EPSILON) return -@log(a);
  if (x > 0) return @positive_lgamma(x);
  const $T s = @fabs(@sin(2 * $PI_2 * (x - @rint(x))));
  if (s == 0) return $INF;
  return @log(2 * $PI_2 / (a * s)) - @positive_lgamma(a);
}
)code"},
};

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_MATH_FUNCTIONS_H_
