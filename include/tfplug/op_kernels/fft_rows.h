// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_FFT_ROWS_H_
#define TFPLUG_OP_KERNELS_FFT_ROWS_H_

#include <array>
#include <cmath>
#include <cstdint>

#include "tfplug/op_kernels/complex.h"
#include "tfplug/op_kernels/helpers.h"

#pragma GCC visibility push(hidden)

// Fourier transforms of the rows of a matrix of complex numbers. A transform of
// a small size is a matrix product, for which devices are fast; a larger one is
// split into two of its factors (Cooley and Tukey, 1965). A prime size is one
// product.
namespace tfplug::op_kernels_internal {

// Returns a view with one more dimension, of the two parts. A real view stays
// the same.
inline Operand RealView(const Operand& view) {
  if (!IsComplex(view.type)) return view;
  return PartOf(view, 0).AddDim(2, 1);
}
inline absl::Status CopyComplex(OpRun& run, const Operand& from,
                                const Operand& to) {
  return Copy(run, RealView(from), RealView(to));
}

// Returns a dense temporary array of complex numbers of `type`.
inline absl::StatusOr<Operand> NewComplex(OpRun& run, DataType type,
                                          const Shape& shape) {
  Shape parts = shape;
  parts.add_dim(2);
  TFPLUG_ASSIGN_OR_RETURN(
      const Operand memory,
      run.launcher().Allocate(PartType(type), parts.dims()));
  return Operand::Dense(memory.data, type, shape.dims());
}

class FourierRows {
 public:
  // Must be called first. `type` is complex.
  absl::Status Init(DataType type, bool is_inverse) {
    type_ = type;
    const DataType part = PartType(type);
    constexpr DataType kInt64 = DataType::kInt64;
    const double right_angle = std::acos(-1.0) / 2;
    // The root of unity of n with the exponent a b: a rotation by right angles,
    // which is exact, and one by at most half of one.
    const auto root = [&](Value a, Value b, Value n) {
      const Value quarters = (a * b) % n * 4;
      const Value turns = (quarters * 2 + n) / (n * 2);
      const Value rest = quarters - turns * n;
      const Value angle = Cast(rest, part) * right_angle / Cast(n, part);
      const Value c = Cos(angle), s = Sin(angle);
      const Value is_odd = turns % 2 == 1, is_second = turns % 4 >= 2;
      const Value re = Select(is_odd, -s, c), im = Select(is_odd, c, s);
      const Value sine = Select(is_second, -im, im);
      return ComplexValue{Select(is_second, -re, re),
                          is_inverse ? sine : -sine};
    };
    // [j, part of x, k, part of y]: the matrix of real numbers that multiplies
    // by the root.
    TFPLUG_ASSIGN_OR_RETURN(
        matrix_,
        MakeExpression({kInt64, kInt64, kInt64, kInt64, kInt64}, {part},
                       [&](Value j, Value from, Value k, Value to, Value n) {
                         const ComplexValue w = root(j, k, n);
                         const Value im = Select(from == 0, w.im, -w.im);
                         return Select(from == to, w.re, im);
                       }));
    TFPLUG_ASSIGN_OR_RETURN(
        root_, MakeExpression({kInt64, kInt64, kInt64}, {part, part},
                              [&](Value a, Value b, Value n) {
                                const ComplexValue w = root(a, b, n);
                                return std::array<Value, 2>{w.re, w.im};
                              }));
    TFPLUG_ASSIGN_OR_RETURN(
        twiddle_,
        MakeExpression({part, part, part, part}, {part, part},
                       [](Value re, Value im, Value root_re, Value root_im) {
                         const ComplexValue y = ComplexValue{re, im} *
                                                ComplexValue{root_re, root_im};
                         return std::array<Value, 2>{y.re, y.im};
                       }));
    return absl::OkStatus();
  }

  // Returns the transform of each row, in new memory. An inverse transform is
  // not divided by the number of elements. A row has at least one element.
  absl::StatusOr<Operand> Transform(OpRun& run, const Operand& rows) const {
    const int64_t n = rows.dim(1), count = rows.dim(0);
    int64_t a = 1;
    if (n > kLargestProduct) {
      for (int64_t f = 2; f * f <= n; ++f) {
        if (n % f == 0) a = f;
      }
    }
    return a == 1 ? Product(run, rows) : Split(run, rows, a, n / a, count);
  }

 private:
  // Larger sizes are split if they have factors.
  static constexpr int64_t kLargestProduct = 64;

  absl::StatusOr<Operand> Product(OpRun& run, const Operand& rows) const {
    const int64_t n = rows.dim(1), count = rows.dim(0);
    const DataType part = PartType(type_);
    TFPLUG_ASSIGN_OR_RETURN(const Operand matrix,
                            run.launcher().Allocate(part, {n, 2, n, 2}));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
        matrix_,
        {ir::IndexOf(matrix, 0), ir::IndexOf(matrix, 1), ir::IndexOf(matrix, 2),
         ir::IndexOf(matrix, 3),
         ir::ScalarOf(DataType::kInt64, static_cast<double>(n), matrix)},
        {matrix}));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            NewComplex(run, type_, {count, n}));
    TFPLUG_RETURN_IF_ERROR(
        run.launcher().MatMul(Operand::Dense(rows.data, part, {count, 2 * n}),
                              Operand::Dense(matrix.data, part, {2 * n, 2 * n}),
                              Operand::Dense(y.data, part, {count, 2 * n})));
    return y;
  }

  // Index j is j1 b + j2, index k is k1 + a k2.
  absl::StatusOr<Operand> Split(OpRun& run, const Operand& rows, int64_t a,
                                int64_t b, int64_t count) const {
    const auto dense = [&](const Operand& view, int64_t n1, int64_t n2) {
      return Operand::Dense(view.data, type_, {count, n1, n2});
    };
    const auto flat = [&](const Operand& view, int64_t n) {
      return Operand::Dense(view.data, type_, {count * a * b / n, n});
    };
    TFPLUG_ASSIGN_OR_RETURN(const Operand by_j2,
                            NewComplex(run, type_, {count, b, a}));
    TFPLUG_RETURN_IF_ERROR(
        CopyComplex(run, ir::WithDimLast(dense(rows, a, b), 1), by_j2));
    TFPLUG_ASSIGN_OR_RETURN(const Operand outer,
                            Transform(run, flat(by_j2, a)));
    // [j2, k1] becomes [k1, j2].
    TFPLUG_ASSIGN_OR_RETURN(const Operand by_k1,
                            NewComplex(run, type_, {count, a, b}));
    const Operand from = ir::WithDimLast(dense(outer, b, a), 1);
    // The same roots for each row.
    TFPLUG_ASSIGN_OR_RETURN(Operand roots, NewComplex(run, type_, {a, b}));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
        root_,
        {ir::IndexOf(roots, 0), ir::IndexOf(roots, 1),
         ir::ScalarOf(DataType::kInt64, static_cast<double>(a * b), roots)},
        {PartOf(roots, 0), PartOf(roots, 1)}));
    roots = ir::WithDim(roots, 0, count);
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
        twiddle_,
        {PartOf(from, 0), PartOf(from, 1), PartOf(roots, 0), PartOf(roots, 1)},
        {PartOf(by_k1, 0), PartOf(by_k1, 1)}));
    TFPLUG_ASSIGN_OR_RETURN(const Operand inner,
                            Transform(run, flat(by_k1, b)));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            NewComplex(run, type_, {count, b, a}));
    TFPLUG_RETURN_IF_ERROR(
        CopyComplex(run, ir::WithDimLast(dense(inner, a, b), 1), y));
    return flat(y, a * b);
  }

  DataType type_{};
  Expression matrix_, root_, twiddle_;
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_FFT_ROWS_H_
