// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_FFT_H_
#define TFPLUG_OP_KERNELS_FFT_H_

#include <cstdint>
#include <string>
#include <utility>

#include "tfplug/op_kernels/complex.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/internal/real_fourier.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Fourier transforms of the last dimensions: one to three, or as many as the
// axes of FFTND and its relatives. Each dimension is transformed in turn.
namespace tfplug {
namespace op_kernels_internal {

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

inline bool IsDense(const Operand& view) {
  int64_t stride = 1;
  for (int d = view.rank - 1; d >= 0; --d) {
    if (view.dim(d) != 1 && view.stride(d) != stride) return false;
    stride *= view.dim(d);
  }
  return true;
}

class FourierKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    takes_axes_ = op.find("ND") != op.npos;
    if (!takes_axes_) rank_ = op.back() == 'D' ? op[op.size() - 2] - '0' : 1;
    is_inverse_ = op[0] == 'I';
    from_real_ = op[0] == 'R';
    to_real_ = op.rfind("IR", 0) == 0;
    type_ = DataType::kComplex64;
    if (construction.HasAttr("Tcomplex")) {
      TFPLUG_ASSIGN_OR_RETURN(type_,
                              construction.GetAttr<DataType>("Tcomplex"));
    }
    const DataType part = PartType(type_);
    TFPLUG_ASSIGN_OR_RETURN(
        scale_, MakeExpression({part, part}, {part},
                               [](Value x, Value n) { return x / n; }));
    TFPLUG_ASSIGN_OR_RETURN(
        negate_, MakeExpression({part}, {part}, [](Value x) { return -x; }));
    if (from_real_ || to_real_) {
      TFPLUG_ASSIGN_OR_RETURN(real_, RealFourierCode::Make(part, is_inverse_));
    }
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Sizes sizes, GetSizes(run, x));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, sizes.output));
    if (y.num_elements() == 0) return absl::OkStatus();
    if (x.num_elements() == 0) return Fill(run, RealView(y), 0);
    const int first = sizes.first, last = x.rank - 1;
    const int64_t n = sizes.lengths.dim(last);
    double count = 1;
    for (int d = first; d <= last; ++d) {
      const int64_t length = sizes.lengths.dim(d);
      count *= static_cast<double>(length);
      // The second half of the last dimension of an IRFFT follows from the first.
      x = ir::Range(x, d, 0, to_real_ && d == last ? n / 2 + 1 : length);
    }
    if (to_real_) {
      if (first < last) {
        TFPLUG_ASSIGN_OR_RETURN(const Operand data,
                                NewComplex(run, type_, ShapeOf(x)));
        TFPLUG_RETURN_IF_ERROR(CopyComplex(run, x, data));
        TFPLUG_RETURN_IF_ERROR(TransformOthers(run, data, first));
        x = data;
      }
      return ToReal(run, x, y, count);
    }
    if (from_real_) {
      TFPLUG_RETURN_IF_ERROR(FromReal(run, x, n, y));
    } else {
      TFPLUG_ASSIGN_OR_RETURN(const Operand dense, Dense(run, x));
      TFPLUG_RETURN_IF_ERROR(Transform(run, dense, y));
    }
    TFPLUG_RETURN_IF_ERROR(TransformOthers(run, y, first));
    if (!is_inverse_) return absl::OkStatus();
    return Scale(run, RealView(y), count, RealView(y));
  }

 private:
  struct Sizes {
    int first;      // the first dimension that is transformed
    Shape lengths;  // of the transforms
    Shape output;   // of the op's output
  };

  absl::StatusOr<Sizes> GetSizes(OpRun& run, const Operand& x) const {
    int rank = rank_;
    if (takes_axes_) {
      TFPLUG_ASSIGN_OR_RETURN(rank, GetRank(run, x));
    }
    if (x.rank < rank) {
      return absl::InvalidArgumentError("Input must have rank of at least " +
                                        std::to_string(rank) +
                                        " but got: " + ShapeOf(x).ToString());
    }
    Sizes sizes{x.rank - rank, ShapeOf(x), ShapeOf(x)};
    if (!takes_axes_ && !from_real_ && !to_real_) return sizes;
    TFPLUG_ASSIGN_OR_RETURN(const Tensor lengths, run.GetInput(1));
    TFPLUG_ASSIGN_OR_RETURN(const Ints length, run.GetInts(1));
    if (lengths.rank() != 1 || lengths.dim(0) != rank) {
      return absl::InvalidArgumentError("fft_length must have shape [" +
                                        std::to_string(rank) + "]");
    }
    for (int i = 0; i < rank; ++i) {
      const int64_t n = length[static_cast<size_t>(i)];
      const int d = sizes.first + i;
      const bool is_last = i == rank - 1;
      const int64_t half = n / 2 + 1;
      const int64_t needed = to_real_ && is_last ? half : n;
      if (n < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("fft_length[", i, "] must >= 0, but got: ", n));
      }
      if (x.dim(d) < needed && x.dim(d) > 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "Input dimension ", d, " must have length of at least ", needed,
            " but got: ", x.dim(d)));
      }
      sizes.lengths.set_dim(d, n);
      sizes.output.set_dim(d, from_real_ && is_last && n > 0 ? half : n);
    }
    return sizes;
  }

  // Returns the number of axes, which must be the last dimensions in order, as
  // in TensorFlow's own kernels.
  static absl::StatusOr<int> GetRank(OpRun& run, const Operand& x) {
    TFPLUG_ASSIGN_OR_RETURN(const Ints axes, run.GetVector(2));
    const int rank = static_cast<int>(axes.size());
    int64_t last = -1;
    for (int i = 0; i < rank; ++i) {
      int64_t axis = axes[static_cast<size_t>(i)];
      if (axis < 0) axis += x.rank;
      if (i > 0 && axis != last + 1) {
        return absl::InvalidArgumentError(
            "axes must be successive and ascending. Axis " +
            std::to_string(axis) + " follows " + std::to_string(last));
      }
      last = axis;
    }
    if (rank > 0 && last != x.rank - 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "The last axis to perform transform on must be -1. It is ", last,
          ", and the input has rank ", x.rank));
    }
    if (rank > 0) return rank;
    return absl::InvalidArgumentError(
        "the axes must have at least one element");
  }

  // Returns `view` or a dense copy of it.
  absl::StatusOr<Operand> Dense(OpRun& run, const Operand& view) const {
    if (IsDense(view)) return view;
    if (IsComplex(view.type)) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand copy,
                              NewComplex(run, view.type, ShapeOf(view)));
      TFPLUG_RETURN_IF_ERROR(CopyComplex(run, view, copy));
      return copy;
    }
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand copy,
        run.launcher().Allocate(view.type, ShapeOf(view).dims()));
    TFPLUG_RETURN_IF_ERROR(Copy(run, view, copy));
    return copy;
  }

  // Transforms the last dimension of one dense array of complex numbers into
  // another one.
  absl::Status Transform(OpRun& run, const Operand& x, const Operand& y) const {
    const int64_t n = x.dim(x.rank - 1), count = x.num_elements() / n;
    const auto rows = [&](const Operand& view) {
      return Operand::Dense(view.data, PartType(type_), {count, n, 2});
    };
    return run.launcher().Fourier(is_inverse_, rows(x), rows(y));
  }

  // Transforms the dimensions from `first` to the one before the last, in place:
  // each becomes the last dimension, and returns to its place.
  absl::Status TransformOthers(OpRun& run, const Operand& data,
                               int first) const {
    for (int d = data.rank - 2; d >= first; --d) {
      const Operand moved = ir::WithDimLast(data, d);
      TFPLUG_ASSIGN_OR_RETURN(const Operand line,
                              NewComplex(run, type_, ShapeOf(moved)));
      TFPLUG_ASSIGN_OR_RETURN(const Operand result,
                              NewComplex(run, type_, ShapeOf(moved)));
      TFPLUG_RETURN_IF_ERROR(CopyComplex(run, moved, line));
      TFPLUG_RETURN_IF_ERROR(Transform(run, line, result));
      TFPLUG_RETURN_IF_ERROR(CopyComplex(run, result, moved));
    }
    return absl::OkStatus();
  }

  absl::Status Scale(OpRun& run, const Operand& x, double n,
                     const Operand& y) const {
    return run.launcher().Map(scale_, {x, ir::ScalarOf(x.type, n, x)}, {y});
  }

  // Returns a dense array of real numbers, whose last dimension has pairs, as one
  // of complex numbers.
  Operand AsPairs(const Operand& view) const {
    Shape shape = ShapeOf(view);
    shape.set_dim(view.rank - 1, view.dim(view.rank - 1) / 2);
    return Operand::Dense(view.data, type_, shape.dims());
  }

  // Transforms the last dimension of real numbers, of which the result has
  // n / 2 + 1 elements.
  absl::Status FromReal(OpRun& run, const Operand& x, int64_t n,
                        const Operand& y) const {
    const int last = x.rank - 1;
    if (n % 2 == 0) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand dense, Dense(run, x));
      const Operand pairs = AsPairs(dense);
      TFPLUG_ASSIGN_OR_RETURN(const Operand data,
                              NewComplex(run, type_, ShapeOf(pairs)));
      TFPLUG_RETURN_IF_ERROR(Transform(run, pairs, data));
      const Operand zero = ir::Range(data, last, 0, 1);
      const Operand begin = ir::Range(y, last, 0, 1);
      const Operand end = ir::Range(y, last, n / 2, n / 2 + 1);
      TFPLUG_RETURN_IF_ERROR(
          run.launcher().Map(real_.edge, {PartOf(zero, 0), PartOf(zero, 1)},
                             {PartOf(begin, 0), PartOf(end, 0)}));
      TFPLUG_RETURN_IF_ERROR(Fill(run, PartOf(begin, 1), 0));
      TFPLUG_RETURN_IF_ERROR(Fill(run, PartOf(end, 1), 0));
      return Combine(run, data, y, n / 2);
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand data,
                            NewComplex(run, type_, ShapeOf(x)));
    TFPLUG_ASSIGN_OR_RETURN(const Operand result,
                            NewComplex(run, type_, ShapeOf(x)));
    TFPLUG_RETURN_IF_ERROR(Copy(run, x, PartOf(data, 0)));
    TFPLUG_RETURN_IF_ERROR(Fill(run, PartOf(data, 1), 0));
    TFPLUG_RETURN_IF_ERROR(Transform(run, data, result));
    return CopyComplex(run, ir::Range(result, last, 0, y.dim(last)), y);
  }

  // Transforms the last dimension, of which `x` has half of the elements, to
  // real numbers, and divides these by `count`. The imaginary parts of elements
  // 0 and n / 2 are ignored.
  absl::Status ToReal(OpRun& run, const Operand& x, const Operand& y,
                      double count) const {
    const int last = x.rank - 1;
    const int64_t n = y.dim(last);
    if (n % 2 == 0) {
      const Operand pairs = AsPairs(y);
      TFPLUG_ASSIGN_OR_RETURN(const Operand data,
                              NewComplex(run, type_, ShapeOf(pairs)));
      TFPLUG_ASSIGN_OR_RETURN(const Operand result,
                              NewComplex(run, type_, ShapeOf(pairs)));
      const Operand zero = ir::Range(data, last, 0, 1);
      TFPLUG_RETURN_IF_ERROR(
          run.launcher().Map(real_.edge,
                             {PartOf(ir::Range(x, last, 0, 1), 0),
                              PartOf(ir::Range(x, last, n / 2, n / 2 + 1), 0)},
                             {PartOf(zero, 0), PartOf(zero, 1)}));
      TFPLUG_RETURN_IF_ERROR(Combine(run, x, data, n / 2));
      TFPLUG_RETURN_IF_ERROR(Transform(run, data, result));
      return Scale(run, RealView(result), count, RealView(pairs));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand data,
                            NewComplex(run, type_, ShapeOf(y)));
    TFPLUG_ASSIGN_OR_RETURN(const Operand result,
                            NewComplex(run, type_, ShapeOf(y)));
    TFPLUG_RETURN_IF_ERROR(
        CopyComplex(run, x, ir::Range(data, last, 0, n / 2 + 1)));
    if (n > 1) {  // Element n - k is the conjugate of element k.
      const Operand from =
          ir::Reversed(ir::Range(x, last, 1, n / 2 + 1), last, x.rank);
      const Operand to = ir::Range(data, last, n / 2 + 1, n);
      TFPLUG_RETURN_IF_ERROR(Copy(run, PartOf(from, 0), PartOf(to, 0)));
      TFPLUG_RETURN_IF_ERROR(
          run.launcher().Map(negate_, {PartOf(from, 1)}, {PartOf(to, 1)}));
    }
    TFPLUG_RETURN_IF_ERROR(Transform(run, data, result));
    return Scale(run, PartOf(result, 0), count, y);
  }

  // Computes elements 1 to half - 1 of the last dimension from those of `x` and
  // the ones that mirror them.
  absl::Status Combine(OpRun& run, const Operand& x, const Operand& y,
                       int64_t half) const {
    if (half == 1) return absl::OkStatus();
    const int last = x.rank - 1;
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand cosine,
        run.launcher().Allocate(PartType(type_), {half - 1}));
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand sine,
        run.launcher().Allocate(PartType(type_), {half - 1}));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
        real_.root,
        {ir::IndexOf(cosine, 0, 1),
         ir::ScalarOf(DataType::kInt64, static_cast<double>(half), cosine)},
        {cosine, sine}));
    const Operand from = ir::Range(x, last, 1, half);
    const Operand mirrored = ir::Reversed(from, last, x.rank);
    const Operand to = ir::Range(y, last, 1, half);
    const Shape shape = ShapeOf(from);
    return run.launcher().Map(
        real_.pass,
        {PartOf(from, 0), PartOf(from, 1), PartOf(mirrored, 0),
         PartOf(mirrored, 1), BroadcastTo(cosine, shape),
         BroadcastTo(sine, shape)},
        {PartOf(to, 0), PartOf(to, 1)});
  }

  int rank_ = 0;
  bool takes_axes_ = false;
  bool is_inverse_ = false, from_real_ = false, to_real_ = false;
  DataType type_{};
  Expression scale_, negate_;
  RealFourierCode real_;
};

}  // namespace op_kernels_internal

inline void FourierOps(const Registrar& registrar) {
  using op_kernels_internal::FourierKernel;
  for (const DataType type : registrar.Supported(kComplexTypes)) {
    const DataType part = op_kernels_internal::PartType(type);
    for (const std::string dims : {"", "2D", "3D", "ND"}) {
      const auto def = [&](const char* op, bool takes_length) {
        KernelDef kernel =
            KernelDef(op + dims).TypeConstraint("Tcomplex", {type});
        if (takes_length) kernel = std::move(kernel).HostMemory("fft_length");
        return dims == "ND" ? std::move(kernel).HostMemory("axes") : kernel;
      };
      for (const char* op : {"FFT", "IFFT"}) {
        registrar.Add<FourierKernel>(def(op, dims == "ND"));
      }
      for (const char* op : {"RFFT", "IRFFT"}) {
        registrar.Add<FourierKernel>(
            def(op, true).TypeConstraint("Treal", {part}));
      }
    }
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_FFT_H_
