// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_FFT_H_
#define TFPLUG_BACKEND_OPS_FFT_H_

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "tfplug/backend/ops/complex.h"
#include "tfplug/backend/ops/helpers.h"
#include "tfplug/backend/registrar.h"

#pragma GCC visibility push(hidden)

// Fourier transforms of one to three dimensions. A transform of a small size is
// a matrix product, for which devices are fast; a larger one is split into two
// of its factors (Cooley and Tukey, 1965). A prime size is one product.
namespace tfplug {
namespace internal {

class FourierKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    rank_ = op.back() == 'D' ? op[op.size() - 2] - '0' : 1;
    is_inverse_ = op[0] == 'I';
    from_real_ = op[0] == 'R';
    to_real_ = op.rfind("IR", 0) == 0;
    type_ = DataType::kComplex64;
    if (construction.HasAttr("Tcomplex")) {
      TFPLUG_ASSIGN_OR_RETURN(type_,
                              construction.GetAttr<DataType>("Tcomplex"));
    }
    return BuildExpressions();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    if (x.rank < rank_) {
      return absl::InvalidArgumentError("Input must have rank of at least " +
                                        std::to_string(rank_) +
                                        " but got: " + ShapeOf(x).ToString());
    }
    const int first = x.rank - rank_, last = x.rank - 1;
    // The sizes of the transform, and of the array of complex numbers that it
    // starts from.
    Shape size = ShapeOf(x), out = size;
    if (from_real_ || to_real_) {
      TFPLUG_ASSIGN_OR_RETURN(const Ints length, run.GetVector(1));
      if (length.size() != static_cast<size_t>(rank_)) {
        return absl::InvalidArgumentError("fft_length must have shape [" +
                                          std::to_string(rank_) + "]");
      }
      for (int i = 0; i < rank_; ++i) {
        const int64_t n = length[static_cast<size_t>(i)];
        const int d = first + i;
        const int64_t needed = to_real_ && d == last ? n / 2 + 1 : n;
        if (n < 0 || (x.dim(d) < needed && x.dim(d) > 0)) {
          return absl::InvalidArgumentError(
              "Input dimension " + std::to_string(d) +
              " must have length of at least " + std::to_string(needed) +
              " but got: " + std::to_string(x.dim(d)));
        }
        size.set_dim(d, n);
        out.set_dim(d, from_real_ && d == last ? n / 2 + 1 : n);
      }
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, out));
    if (y.num_elements() == 0) return absl::OkStatus();
    if (x.num_elements() == 0) return Fill(run, RealView(y), 0);
    TFPLUG_ASSIGN_OR_RETURN(const Operand data, NewComplex(run, size));
    TFPLUG_RETURN_IF_ERROR(Load(run, x, data));
    for (int d = first; d <= last; ++d) {
      // The dimension becomes the last one, then returns to its place.
      const Operand moved = WithDimLast(data, d);
      TFPLUG_ASSIGN_OR_RETURN(Operand line, NewComplex(run, ShapeOf(moved)));
      TFPLUG_RETURN_IF_ERROR(CopyComplex(run, moved, line));
      const int64_t n = size.dim(d);
      const Operand rows =
          Operand::Dense(line.data, line.type, {line.num_elements() / n, n});
      TFPLUG_ASSIGN_OR_RETURN(const Operand result, Transform(run, rows));
      TFPLUG_RETURN_IF_ERROR(CopyComplex(
          run, Operand::Dense(result.data, line.type, DimsOf(moved)), moved));
    }
    return Store(run, data, y, size);
  }

 private:
  // Larger sizes are split if they have factors.
  static constexpr int64_t kLargestProduct = 64;

  absl::Status BuildExpressions() {
    const DataType part = PartType(type_);
    constexpr DataType kInt64 = DataType::kInt64;
    const double turn = (is_inverse_ ? 2 : -2) * std::acos(-1.0);
    // The root of unity of n with the exponent a b, computed where the angle is
    // in [-1/2, 1/2] turns.
    const auto root = [&](Value a, Value b, Value n) {
      const Value exponent = (a * b) % n;
      const Value centered = Select(exponent * 2 > n, exponent - n, exponent);
      const Value angle = Cast(centered, part) * turn / Cast(n, part);
      return ComplexValue{Cos(angle), Sin(angle)};
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
        twiddle_,
        MakeExpression(
            {part, part, kInt64, kInt64, kInt64}, {part, part},
            [&](Value re, Value im, Value a, Value b, Value n) {
              const ComplexValue y = ComplexValue{re, im} * root(a, b, n);
              return std::array<Value, 2>{y.re, y.im};
            }));
    TFPLUG_ASSIGN_OR_RETURN(
        scale_, MakeExpression({part, part}, {part},
                               [](Value x, Value n) { return x / n; }));
    TFPLUG_ASSIGN_OR_RETURN(
        negate_, MakeExpression({part}, {part}, [](Value x) { return -x; }));
    return absl::OkStatus();
  }

  absl::StatusOr<Operand> NewComplex(OpRun& run, const Shape& shape) const {
    Shape parts = shape;
    parts.add_dim(2);
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand memory,
        run.launcher().Allocate(PartType(type_), parts.dims()));
    return Operand::Dense(memory.data, type_, shape.dims());
  }

  // Returns a view with one more dimension, of the two parts. A real view stays
  // the same.
  static Operand RealView(const Operand& view) {
    if (!IsComplex(view.type)) return view;
    return PartOf(view, 0).AddDim(2, 1);
  }
  static absl::Status CopyComplex(OpRun& run, const Operand& from,
                                  const Operand& to) {
    return Copy(run, RealView(from), RealView(to));
  }

  // Copies the part of the input that the transform uses. The second half of
  // the last dimension of an IRFFT follows from the first one.
  absl::Status Load(OpRun& run, Operand x, const Operand& data) const {
    const int first = x.rank - rank_, last = x.rank - 1;
    const int64_t n = data.dim(last);
    for (int d = first; d <= last; ++d) {
      const int64_t count = to_real_ && d == last ? n / 2 + 1 : data.dim(d);
      x = Range(x, d, 0, count);
    }
    if (from_real_) {
      TFPLUG_RETURN_IF_ERROR(Copy(run, x, PartOf(data, 0)));
      return Fill(run, PartOf(data, 1), 0);
    }
    if (!to_real_) return CopyComplex(run, x, data);
    TFPLUG_RETURN_IF_ERROR(
        CopyComplex(run, x, Range(data, last, 0, n / 2 + 1)));
    const int64_t rest = n - (n / 2 + 1);
    if (rest == 0) return absl::OkStatus();
    return LoadConjugates(run, x, data, first, last, rest);
  }

  // Element i of each transformed dimension is the conjugate of element -i. The
  // elements with index 0 in the dimensions before the last have their own
  // views, because 0 is its own negative.
  absl::Status LoadConjugates(OpRun& run, const Operand& x, const Operand& data,
                              int first, int last, int64_t rest) const {
    const int64_t n = data.dim(last);
    for (int zeros = 0; zeros < 1 << (last - first); ++zeros) {
      Operand from = Range(x, last, 1, 1 + rest);
      from.Advance((rest - 1) * from.stride(last));
      from.stride(last) = -from.stride(last);
      Operand to = Range(data, last, n - rest, n);
      for (int d = first; d < last; ++d) {
        if ((zeros >> (d - first) & 1) != 0) {
          from = Range(from, d, 0, 1);
          to = Range(to, d, 0, 1);
        } else {
          from = Range(from, d, 1, x.dim(d));
          from.Advance((from.dim(d) - 1) * from.stride(d));
          from.stride(d) = -from.stride(d);
          to = Range(to, d, 1, data.dim(d));
        }
      }
      if (to.num_elements() == 0) continue;
      TFPLUG_RETURN_IF_ERROR(Copy(run, PartOf(from, 0), PartOf(to, 0)));
      TFPLUG_RETURN_IF_ERROR(
          run.launcher().Map(negate_, {PartOf(from, 1)}, {PartOf(to, 1)}));
    }
    return absl::OkStatus();
  }

  absl::Status Store(OpRun& run, const Operand& data, const Operand& y,
                     const Shape& size) const {
    Operand from = data;
    const int last = from.rank - 1;
    if (from_real_) from = Range(from, last, 0, y.dim(last));
    const Operand source = to_real_ ? PartOf(from, 0) : RealView(from);
    if (!is_inverse_) return Copy(run, source, RealView(y));
    double n = 1;
    for (int d = size.rank() - rank_; d < size.rank(); ++d) {
      n *= static_cast<double>(size.dim(d));
    }
    return run.launcher().Map(
        scale_, {source, ScalarOf(source.type, n, source)}, {RealView(y)});
  }

  // Returns the transform of each row, in new memory.
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

  absl::StatusOr<Operand> Product(OpRun& run, const Operand& rows) const {
    const int64_t n = rows.dim(1), count = rows.dim(0);
    const DataType part = PartType(type_);
    TFPLUG_ASSIGN_OR_RETURN(const Operand matrix,
                            run.launcher().Allocate(part, {n, 2, n, 2}));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
        matrix_,
        {IndexOf(matrix, 0), IndexOf(matrix, 1), IndexOf(matrix, 2),
         IndexOf(matrix, 3),
         ScalarOf(DataType::kInt64, static_cast<double>(n), matrix)},
        {matrix}));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, NewComplex(run, {count, n}));
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
                            NewComplex(run, {count, b, a}));
    TFPLUG_RETURN_IF_ERROR(
        CopyComplex(run, WithDimLast(dense(rows, a, b), 1), by_j2));
    TFPLUG_ASSIGN_OR_RETURN(const Operand outer,
                            Transform(run, flat(by_j2, a)));
    // [j2, k1] becomes [k1, j2].
    TFPLUG_ASSIGN_OR_RETURN(const Operand by_k1,
                            NewComplex(run, {count, a, b}));
    const Operand from = WithDimLast(dense(outer, b, a), 1);
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
        twiddle_,
        {PartOf(from, 0), PartOf(from, 1), IndexOf(by_k1, 1), IndexOf(by_k1, 2),
         ScalarOf(DataType::kInt64, static_cast<double>(a * b), by_k1)},
        {PartOf(by_k1, 0), PartOf(by_k1, 1)}));
    TFPLUG_ASSIGN_OR_RETURN(const Operand inner,
                            Transform(run, flat(by_k1, b)));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, NewComplex(run, {count, b, a}));
    TFPLUG_RETURN_IF_ERROR(
        CopyComplex(run, WithDimLast(dense(inner, a, b), 1), y));
    return flat(y, a * b);
  }

  int rank_ = 1;
  bool is_inverse_ = false, from_real_ = false, to_real_ = false;
  DataType type_{};
  Expression matrix_, twiddle_, scale_, negate_;
};

}  // namespace internal

inline void FourierOps(const Registrar& registrar) {
  using internal::FourierKernel;
  for (const DataType type : registrar.Supported(kComplexTypes)) {
    const DataType part = internal::PartType(type);
    for (const std::string dims : {"", "2D", "3D"}) {
      for (const char* op : {"FFT", "IFFT"}) {
        registrar.Add<FourierKernel>(
            KernelDef(op + dims).TypeConstraint("Tcomplex", {type}));
      }
      for (const char* op : {"RFFT", "IRFFT"}) {
        registrar.Add<FourierKernel>(KernelDef(op + dims)
                                         .TypeConstraint("Tcomplex", {type})
                                         .TypeConstraint("Treal", {part})
                                         .HostMemory("fft_length"));
      }
    }
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_OPS_FFT_H_
