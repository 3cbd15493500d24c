// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_REAL_FOURIER_H_
#define TFPLUG_OP_KERNELS_INTERNAL_REAL_FOURIER_H_

#include <array>
#include <cmath>

#include "absl/status/statusor.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/primitives/elements.h"

#pragma GCC visibility push(hidden)

// Fourier transforms of real numbers. One of n numbers, if n is even, is one of
// n / 2 complex numbers, the elements with even indices as their real and those
// with odd indices as their imaginary parts, and one pass that combines elements
// k and n / 2 - k of the result. Its inverse begins with such a pass.
namespace tfplug::op_kernels_internal {

// The passes between real and complex numbers, of parts of type `type`. Their
// inputs are elements k and n / 2 - k and the root of unity of n with exponent k,
// or, at the edge, what is left of elements 0 and n / 2.
struct RealFourierCode {
  Expression root, pass, edge;

  static absl::StatusOr<RealFourierCode> Make(DataType type, bool is_inverse) {
    RealFourierCode code;
    const double right_angle = std::acos(-1.0) / 2;
    // Rotates by right angles, which is exact, and at most half of one more.
    TFPLUG_ASSIGN_OR_RETURN(
        code.root,
        MakeExpression({DataType::kInt64, DataType::kInt64}, {type, type},
                       [&](Value k, Value half) {
                         const Value turns = (k * 4 + half) / (half * 2);
                         const Value rest = k * 2 - turns * half;
                         const Value angle =
                             Cast(rest, type) * right_angle / Cast(half, type);
                         const Value c = Cos(angle), s = Sin(angle);
                         return std::array<Value, 2>{
                             Select(turns == 0, c, Select(turns == 1, -s, -c)),
                             Select(turns == 0, s, Select(turns == 1, c, -s))};
                       }));
    TFPLUG_ASSIGN_OR_RETURN(
        code.pass,
        MakeExpression(
            {type, type, type, type, type, type}, {type, type},
            [&](Value re, Value im, Value other_re, Value other_im, Value c,
                Value s) {
              const Value sum_re = re + other_re, sum_im = im - other_im;
              const Value odd_re = re - other_re, odd_im = im + other_im;
              const Value turned_re = c * odd_im, turned_im = c * odd_re;
              if (is_inverse) {
                return std::array<Value, 2>{sum_re - (turned_re + s * odd_re),
                                            sum_im + (turned_im - s * odd_im)};
              }
              return std::array<Value, 2>{
                  (sum_re + (turned_re - s * odd_re)) * 0.5,
                  (sum_im - (turned_im + s * odd_im)) * 0.5};
            }));
    TFPLUG_ASSIGN_OR_RETURN(
        code.edge,
        MakeExpression(
            {type, type}, {type, type}, [](Value first, Value second) {
              return std::array<Value, 2>{first + second, first - second};
            }));
    return code;
  }
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_REAL_FOURIER_H_
