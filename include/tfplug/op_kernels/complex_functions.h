// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_COMPLEX_FUNCTIONS_H_
#define TFPLUG_OP_KERNELS_COMPLEX_FUNCTIONS_H_

#include "tfplug/ir/value.h"

#pragma GCC visibility push(hidden)

// Functions of complex numbers in terms of functions of their real and
// imaginary parts, so that no intermediate result overflows or loses digits
// where the result does not. The branch cuts are those of C99.
namespace tfplug::op_kernels_internal {

struct ComplexValue {
  Value re, im;
};

inline ComplexValue operator+(ComplexValue a, ComplexValue b) {
  return {a.re + b.re, a.im + b.im};
}
inline ComplexValue operator-(ComplexValue a, ComplexValue b) {
  return {a.re - b.re, a.im - b.im};
}
inline ComplexValue operator*(ComplexValue a, ComplexValue b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
inline ComplexValue operator*(ComplexValue a, Value b) {
  return {a.re * b, a.im * b};
}
// Divides both numbers by the larger part of b first, so that nothing
// overflows (Smith, "Algorithm 116: Complex division", 1962).
inline ComplexValue operator/(ComplexValue a, ComplexValue b) {
  const Value by_re = Abs(b.re) >= Abs(b.im);
  const Value large = Select(by_re, b.re, b.im);
  const Value ratio = Select(by_re, b.im, b.re) / large;
  const Value divisor = large + Select(by_re, b.im, b.re) * ratio;
  const Value re = Select(by_re, a.re + a.im * ratio, a.re * ratio + a.im);
  const Value im = Select(by_re, a.im - a.re * ratio, a.im * ratio - a.re);
  return {re / divisor, im / divisor};
}

inline ComplexValue SelectComplex(Value condition, ComplexValue x,
                                  ComplexValue y) {
  return {Select(condition, x.re, y.re), Select(condition, x.im, y.im)};
}
inline Value IsZero(ComplexValue x) { return (x.re == 0) & (x.im == 0); }
inline ComplexValue OneLike(ComplexValue x) {
  return {x.re.Like(1), x.re.Like(0)};
}
// Keep the sign of a zero, which chooses the side of a branch cut.
inline ComplexValue OnePlus(ComplexValue x) { return {1 + x.re, x.im}; }
inline ComplexValue OneMinus(ComplexValue x) { return {1 - x.re, -x.im}; }
inline ComplexValue RealOnly(Value x) { return {x, x}; }
inline ComplexValue ConjOf(ComplexValue x) { return {x.re, -x.im}; }
inline ComplexValue NegOf(ComplexValue x) { return {-x.re, -x.im}; }
// Return the products with i and -i.
inline ComplexValue TimesI(ComplexValue x) { return {-x.im, x.re}; }
inline ComplexValue TimesMinusI(ComplexValue x) { return {x.im, -x.re}; }

inline Value AbsOf(ComplexValue x) {
  const Value large = Max(Abs(x.re), Abs(x.im));
  const Value ratio = Min(Abs(x.re), Abs(x.im)) / large;
  const Value is_exact = (large == 0) | (large == Infinity(large));
  return Select(is_exact, large, large * Sqrt(1 + ratio * ratio));
}
// Returns `size` with the sign of `sign`, also of -0.
inline Value WithSignOf(Value size, Value sign) {
  const Value is_negative = Select(sign == 0, 1 / sign, sign) < 0;
  return Select(is_negative, -size, size);
}

// Return the product of a factor up to 1 and cosh(x) or sinh(x), which may
// overflow alone.
inline Value TimesCosh(Value factor, Value x) {
  const Value half = Cosh(x * 0.5);
  return Select(Abs(x) > 40, 2 * factor * half * half, factor * Cosh(x));
}
inline Value TimesSinh(Value factor, Value x) {
  return Select(Abs(x) > 40, TimesCosh(Select(x < 0, -factor, factor), x),
                factor * Sinh(x));
}

inline ComplexValue ExpOf(ComplexValue x) {
  const Value size = Exp(x.re);
  return {size * Cos(x.im), size * Sin(x.im)};
}
inline ComplexValue Expm1Of(ComplexValue x) {
  const Value half = Sin(x.im * 0.5);
  return {Expm1(x.re) * Cos(x.im) - 2 * half * half, Exp(x.re) * Sin(x.im)};
}
inline ComplexValue LogOf(ComplexValue x) {
  // Near the unit circle, the logarithm of the size loses the digits that
  // log1p(size^2 - 1) keeps.
  const Value large = Max(Abs(x.re), Abs(x.im));
  const Value small = Min(Abs(x.re), Abs(x.im));
  const Value near = 0.5 * Log1p((large - 1) * (large + 1) + small * small);
  const Value is_near = (large > 0.7) & (large < 1.5);
  return {Select(is_near, near, Log(AbsOf(x))), Atan2(x.im, x.re)};
}
inline ComplexValue Log1pOf(ComplexValue x) {
  const Value is_small = Max(Abs(x.re), Abs(x.im)) < 0.5;
  const ComplexValue log = LogOf(OnePlus(x));
  return {
      Select(is_small, 0.5 * Log1p(x.re * (2 + x.re) + x.im * x.im), log.re),
      log.im};
}
inline ComplexValue SqrtOf(ComplexValue x) {
  const Value root = Sqrt(0.5 * Abs(x.re) + 0.5 * AbsOf(x));
  const Value other = 0.5 * Abs(x.im) / root;
  const Value is_left = x.re < 0;
  const ComplexValue finite = {Select(is_left, other, root),
                               WithSignOf(Select(is_left, root, other), x.im)};
  const Value is_infinite = Abs(x.im) == Infinity(x.im);
  return SelectComplex(
      IsZero(x), {x.re.Like(0), x.im},
      SelectComplex(is_infinite, {Infinity(x.re), x.im}, finite));
}
inline ComplexValue RsqrtOf(ComplexValue x) { return OneLike(x) / SqrtOf(x); }
inline ComplexValue PowOf(ComplexValue x, ComplexValue y) {
  const ComplexValue log = y * LogOf(x);
  const ComplexValue root = ExpOf({log.re * 0.5, log.im * 0.5});
  const ComplexValue power = root * root;
  const Value infinity = Infinity(x.re), nan = infinity - infinity;
  const Value re = Select(y.re < 0, infinity, nan);
  const ComplexValue of_zero = {Select(y.re > 0, 0, re),
                                Select(y.re > 0, 0, nan)};
  return SelectComplex(IsZero(y), OneLike(x),
                       SelectComplex(IsZero(x), of_zero, power));
}

// Kahan's formula, up to where the real part is 1 in each type.
inline ComplexValue TanhOf(ComplexValue x) {
  const Value tangent = Tan(x.im), beta = 1 + tangent * tangent;
  const Value bound = Min(Max(x.re, -20), 20);
  const Value sinh = Sinh(bound), rho = Sqrt(1 + sinh * sinh);
  const Value divisor = 1 + beta * sinh * sinh;
  const Value tail = 4 * Sin(x.im) * Cos(x.im) * Exp(-2 * Abs(x.re));
  return SelectComplex(Abs(x.re) > 20, {WithSignOf(x.re.Like(1), x.re), tail},
                       {beta * rho * sinh / divisor, tangent / divisor});
}
inline ComplexValue TanOf(ComplexValue x) {
  return TimesMinusI(TanhOf(TimesI(x)));
}
inline ComplexValue SigmoidOf(ComplexValue x) {
  const Value is_left = x.re < 0;
  const ComplexValue exp = ExpOf(SelectComplex(is_left, x, NegOf(x)));
  return SelectComplex(is_left, exp, OneLike(x)) / (OneLike(x) + exp);
}

// The inverse functions are Kahan's ("Branch cuts for complex elementary
// functions", 1987).
inline ComplexValue AsinOf(ComplexValue x) {
  const ComplexValue a = SqrtOf(OneMinus(x)), b = SqrtOf(OnePlus(x));
  return {Atan2(x.re, (a * b).re), Asinh((ConjOf(a) * b).im)};
}
inline ComplexValue AcosOf(ComplexValue x) {
  const ComplexValue a = SqrtOf(OneMinus(x)), b = SqrtOf(OnePlus(x));
  return {2 * Atan2(a.re, b.re), Asinh((ConjOf(b) * a).im)};
}
inline ComplexValue AcoshOf(ComplexValue x) {
  const ComplexValue a = SqrtOf({x.re - 1, x.im}), b = SqrtOf(OnePlus(x));
  return {Asinh((ConjOf(a) * b).re), 2 * Atan2(a.im, b.re)};
}
inline ComplexValue AtanhOf(ComplexValue x) {
  const Value re = Abs(x.re), left = 1 - re, square = x.im * x.im;
  return {WithSignOf(0.25 * Log1p(4 * re / (left * left + square)), x.re),
          0.5 * Atan2(2 * x.im, left * (1 + re) - square)};
}
inline ComplexValue AsinhOf(ComplexValue x) {
  return TimesMinusI(AsinOf(TimesI(x)));
}
inline ComplexValue AtanOf(ComplexValue x) {
  return TimesMinusI(AtanhOf(TimesI(x)));
}

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_COMPLEX_FUNCTIONS_H_
