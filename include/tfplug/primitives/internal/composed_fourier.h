// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_FOURIER_H_
#define TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_FOURIER_H_

#include <array>
#include <cmath>
#include <cstdint>

#include "tfplug/base/separate.h"
#include "tfplug/primitives/elements.h"
#include "tfplug/primitives/internal/compose.h"
#include "tfplug/primitives/launcher.h"

#pragma GCC visibility push(hidden)

// Fourier transforms composed of products and Map. A transform of a small size
// is a matrix product, for which devices are fast; a larger one is split into
// two of its factors (Cooley and Tukey, 1965). A prime size is one product.
namespace tfplug::primitives_internal {

// The expressions of a transform.
struct FourierCode {
  Expression matrix, root, twiddle;

  static absl::StatusOr<FourierCode> Make(DataType type, bool is_inverse) {
    constexpr DataType kInt64 = DataType::kInt64;
    using Complex = std::array<Value, 2>;
    const double right_angle = std::acos(-1.0) / 2;
    // The root of unity of n with the exponent a b: a rotation by right angles,
    // which is exact, and one by at most half of one.
    const auto root = [&](Value a, Value b, Value n) {
      const Value quarters = (a * b) % n * 4;
      const Value turns = (quarters * 2 + n) / (n * 2);
      const Value rest = quarters - turns * n;
      const Value angle = Cast(rest, type) * right_angle / Cast(n, type);
      const Value c = Cos(angle), s = Sin(angle);
      const Value is_odd = turns % 2 == 1, is_second = turns % 4 >= 2;
      const Value re = Select(is_odd, -s, c), im = Select(is_odd, c, s);
      const Value sine = Select(is_second, -im, im);
      return Complex{Select(is_second, -re, re), is_inverse ? sine : -sine};
    };
    FourierCode code;
    // [j, part of x, k, part of y]: the matrix of real numbers that multiplies
    // by the root.
    TFPLUG_ASSIGN_OR_RETURN(
        code.matrix,
        MakeExpression({kInt64, kInt64, kInt64, kInt64, kInt64}, {type},
                       [&](Value j, Value from, Value k, Value to, Value n) {
                         const auto [re, im] = root(j, k, n);
                         return Select(from == to, re,
                                       Select(from == 0, im, -im));
                       }));
    TFPLUG_ASSIGN_OR_RETURN(code.root, MakeExpression({kInt64, kInt64, kInt64},
                                                      {type, type}, root));
    TFPLUG_ASSIGN_OR_RETURN(
        code.twiddle,
        MakeExpression({type, type, type, type}, {type, type},
                       [](Value re, Value im, Value root_re, Value root_im) {
                         return Complex{re * root_re - im * root_im,
                                        re * root_im + im * root_re};
                       }));
    return code;
  }
};

// Transforms the rows of matrices whose last dimension has the two parts.
class ComposedFourier {
 public:
  ComposedFourier(Launcher& launcher, const FourierCode& code, DataType type)
      : launcher_(launcher), code_(code), type_(type) {}

  absl::Status Transform(const Operand& x, const Operand& y) const {
    const int64_t n = x.dim(1);
    int64_t a = 1;
    if (n > kLargestProduct) {
      for (int64_t f = 2; f * f <= n; ++f) {
        if (n % f == 0) a = f;
      }
    }
    return a == 1 ? Product(x, y) : Split(x, y, a, n / a);
  }

 private:
  // Larger sizes are split if they have factors.
  static constexpr int64_t kLargestProduct = 64;

  Operand Int(int64_t value, const Operand& like) const {
    return ir::ScalarOf(DataType::kInt64, static_cast<double>(value), like);
  }
  static Operand Part(Operand view, int part) {
    view = ir::Range(view, view.rank - 1, part, part + 1);
    --view.rank;
    return view;
  }

  absl::Status Product(const Operand& x, const Operand& y) const {
    const int64_t n = x.dim(1), count = x.dim(0);
    TFPLUG_ASSIGN_OR_RETURN(const Operand matrix,
                            launcher_.Allocate(type_, {n, 2, n, 2}));
    TFPLUG_RETURN_IF_ERROR(launcher_.Map(
        code_.matrix,
        {ir::IndexOf(matrix, 0), ir::IndexOf(matrix, 1), ir::IndexOf(matrix, 2),
         ir::IndexOf(matrix, 3), Int(n, matrix)},
        {matrix}));
    return launcher_.MatMul(Operand::Dense(x.data, type_, {count, 2 * n}),
                            Operand::Dense(matrix.data, type_, {2 * n, 2 * n}),
                            Operand::Dense(y.data, type_, {count, 2 * n}));
  }

  // Index j is j1 b + j2, index k is k1 + a k2.
  absl::Status Split(const Operand& x, const Operand& y, int64_t a,
                     int64_t b) const {
    const int64_t count = x.dim(0);
    const auto dense = [&](const Operand& view, int64_t n1, int64_t n2) {
      return Operand::Dense(view.data, type_, {count, n1, n2, 2});
    };
    const auto flat = [&](const Operand& view, int64_t n) {
      return Operand::Dense(view.data, type_, {count * a * b / n, n, 2});
    };
    // Returns the view [rows, n1, n2, part] with n1 and n2 exchanged.
    const auto turned = [](Operand view) {
      std::swap(view.dim(1), view.dim(2));
      std::swap(view.stride(1), view.stride(2));
      return view;
    };
    TFPLUG_ASSIGN_OR_RETURN(const Operand first,
                            launcher_.Allocate(type_, {count, b, a, 2}));
    TFPLUG_ASSIGN_OR_RETURN(const Operand second,
                            launcher_.Allocate(type_, {count, b, a, 2}));
    TFPLUG_RETURN_IF_ERROR(
        primitives::Copy(launcher_, turned(dense(x, a, b)), first));
    TFPLUG_RETURN_IF_ERROR(Transform(flat(first, a), flat(second, a)));
    // [j2, k1] becomes [k1, j2], with the same roots for each row.
    TFPLUG_ASSIGN_OR_RETURN(Operand roots,
                            launcher_.Allocate(type_, {a, b, 2}));
    const Operand re = Part(roots, 0), im = Part(roots, 1);
    TFPLUG_RETURN_IF_ERROR(launcher_.Map(
        code_.root, {ir::IndexOf(re, 0), ir::IndexOf(re, 1), Int(a * b, re)},
        {re, im}));
    roots = ir::WithDim(roots, 0, count);
    const Operand from = turned(dense(second, b, a)), to = dense(first, a, b);
    TFPLUG_RETURN_IF_ERROR(launcher_.Map(
        code_.twiddle,
        {Part(from, 0), Part(from, 1), Part(roots, 0), Part(roots, 1)},
        {Part(to, 0), Part(to, 1)}));
    TFPLUG_RETURN_IF_ERROR(Transform(flat(first, b), flat(second, b)));
    return primitives::Copy(launcher_, turned(dense(second, a, b)),
                            dense(y, b, a));
  }

  Launcher& launcher_;
  const FourierCode& code_;
  DataType type_;
};

TFPLUG_SEPARABLE absl::Status ComposeFourier(Launcher& launcher,
                                             bool is_inverse, const Operand& x,
                                             const Operand& y) {
  static primitives::Memo<FourierCode> memo;
  const uint32_t key =
      primitives::KeyOf(x.type) | static_cast<uint32_t>(is_inverse) << 8;
  TFPLUG_ASSIGN_OR_RETURN(const FourierCode* const code, memo.Get(key, [&] {
    return FourierCode::Make(x.type, is_inverse);
  }));
  return ComposedFourier(launcher, *code, x.type).Transform(x, y);
}

}  // namespace tfplug::primitives_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_FOURIER_H_
