// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SPECIAL_INTEGRALS_H_
#define TFPLUG_OP_KERNELS_SPECIAL_INTEGRALS_H_

#include <cmath>
#include <complex>
#include <limits>

#pragma GCC visibility push(hidden)

// Functions defined by integrals, on the host. Their series are summed in long
// double, whose additional digits absorb the rounding of the terms.
namespace tfplug::op_kernels_internal {

using Real = long double;
inline constexpr Real kPi = 3.14159265358979323846264338327950288L;
inline constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// Returns the sum of terms from first(0) on, term(k + 1) = term(k) * ratio(k),
// each weighted by weight(k).
template <class Ratio, class Weight>
Real SumSeries(Real term, Ratio ratio, Weight weight) {
  Real sum = 0;
  for (int k = 0; k < 1000; ++k) {
    const Real part = term * weight(k);
    const Real before = sum;
    sum += part;
    if (sum == before && k > 2) break;
    term *= ratio(k);
  }
  return sum;
}

// Returns the sum of an asymptotic series, whose terms are first used up to the
// smallest one.
template <class Ratio>
Real SumAsymptotic(Ratio ratio) {
  Real sum = 1, term = 1;
  for (int k = 0; k < 1000; ++k) {
    const Real next = term * ratio(k);
    if (!(std::fabs(next) < std::fabs(term)) || sum + next == sum) break;
    sum += term = next;
  }
  return sum;
}

// Returns Dawsn, exp(-x^2) times the integral of exp(t^2) from 0 to x.
inline double Dawson(double value) {
  const Real x = value, square = x * x;
  if (std::isnan(value)) return value;
  if (std::fabs(value) < 7) {
    return static_cast<double>(
        x * std::exp(-square) *
        SumSeries(
            1, [&](int k) { return square / static_cast<Real>(k + 1); },
            [](int k) { return 1 / static_cast<Real>(2 * k + 1); }));
  }
  return static_cast<double>(SumAsymptotic([&](int k) {
                               return static_cast<Real>(2 * k + 1) /
                                      (2 * square);
                             }) /
                             (2 * x));
}

// Returns Expint, the principal value of the integral of exp(t) / t from minus
// infinity to x, for x > 0.
inline double ExponentialIntegral(double value) {
  constexpr Real kEuler = 0.577215664901532860606512090082402431L;
  if (!(value > 0)) return value == 0 ? -INFINITY : kNotANumber;
  if (value > 800) return INFINITY;
  const Real x = value;
  if (x < 40) {
    return static_cast<double>(
        kEuler + std::log(x) +
        SumSeries(
            x, [&](int k) { return x / static_cast<Real>(k + 2); },
            [](int k) { return 1 / static_cast<Real>(k + 1); }));
  }
  return static_cast<double>(std::exp(x) / x * SumAsymptotic([&](int k) {
                               return static_cast<Real>(k + 1) / x;
                             }));
}

// Returns the dilogarithm of |z| <= 1/2.
inline Real Dilogarithm(Real z) {
  return SumSeries(
      z, [&](int) { return z; },
      [](int k) {
        const Real n = static_cast<Real>(k + 1);
        return 1 / (n * n);
      });
}

// Returns Spence, minus the integral of log(t) / (t - 1) from 1 to x, which is
// the dilogarithm of 1 - x.
inline double SpenceIntegral(double value) {
  if (!(value >= 0)) return kNotANumber;
  const Real x = value;
  if (value == 0) return static_cast<double>(kPi * kPi / 6);
  if (value < 0.5) {
    return static_cast<double>(kPi * kPi / 6 - std::log(x) * std::log1p(-x) -
                               Dilogarithm(x));
  }
  if (value <= 1.5) return static_cast<double>(Dilogarithm(1 - x));
  const Real log = std::log(x);
  if (value <= 2) {
    return static_cast<double>(-Dilogarithm(1 - 1 / x) - log * log / 2);
  }
  if (std::isinf(value)) return -INFINITY;
  return static_cast<double>(Dilogarithm(1 / x) - kPi * kPi / 6 -
                             log * std::log1p(-1 / x) - log * log / 2);
}

// Returns the integrals of cos(pi t^2 / 2) and sin(pi t^2 / 2) from 0 to x.
inline std::complex<Real> Fresnel(double value) {
  using Complex = std::complex<Real>;
  const Real x = std::fabs(static_cast<Real>(value));
  const Real sign = value < 0 ? -1 : 1;
  if (std::isnan(value)) return {kNotANumber, kNotANumber};
  // sin and cos of larger angles have no correct digits in double.
  if (x > 1e8L) return {sign / 2, sign / 2};
  const Real square = x * x, angle = kPi / 2 * square;
  if (x < 1.5L) {
    const auto ratio = [&](int step) {
      return [=](int k) {
        const auto n = static_cast<Real>(2 * k + step);
        return -angle * angle / (n * (n + 1));
      };
    };
    const Real c = SumSeries(
        x, ratio(1), [](int k) { return 1 / static_cast<Real>(4 * k + 1); });
    const Real s = SumSeries(x * angle, ratio(2), [](int k) {
      return 1 / static_cast<Real>(4 * k + 3);
    });
    return {sign * c, sign * s};
  }
  // The complementary error function of (1 - i) x sqrt(pi) / 2 as a continued
  // fraction, evaluated from the front (Lentz).
  Complex b(1, -2 * angle);
  Complex c = 1e300L, d = Real(1) / b, h = d;
  for (int k = 1; k < 1000; ++k) {
    const auto n = static_cast<Real>(2 * k);
    const Real a = -(n - 1) * n;
    b += Real(4);
    d = Real(1) / (a * d + b);
    c = b + a / c;
    const Complex change = c * d;
    h *= change;
    if (std::abs(change.real() - 1) + std::abs(change.imag()) < 1e-19L) break;
  }
  h *= Complex(x, -x);
  const Complex turn(std::cos(angle), std::sin(angle));
  const Complex result = Complex(0.5L, 0.5L) * (Real(1) - turn * h);
  return {sign * result.real(), sign * result.imag()};
}

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_SPECIAL_INTEGRALS_H_
