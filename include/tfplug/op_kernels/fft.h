// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_FFT_H_
#define TFPLUG_OP_KERNELS_FFT_H_

#include <string>
#include <utility>

#include "tfplug/op_kernels/complex.h"
#include "tfplug/op_kernels/helpers.h"
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
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Sizes sizes, GetSizes(run, x));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, sizes.output));
    if (y.num_elements() == 0) return absl::OkStatus();
    if (x.num_elements() == 0) return Fill(run, RealView(y), 0);
    TFPLUG_ASSIGN_OR_RETURN(Operand data, NewComplex(run, type_, sizes.data));
    TFPLUG_RETURN_IF_ERROR(Load(run, x, data, sizes.first));
    for (int d = x.rank - 1; d >= sizes.first; --d) {
      // Another dimension than the last becomes it, then returns to its place.
      const bool is_last = d == x.rank - 1;
      const Operand moved = ir::WithDimLast(data, d);
      Operand line = data;
      if (!is_last) {
        TFPLUG_ASSIGN_OR_RETURN(line, NewComplex(run, type_, ShapeOf(moved)));
        TFPLUG_RETURN_IF_ERROR(CopyComplex(run, moved, line));
      }
      TFPLUG_ASSIGN_OR_RETURN(const Operand result,
                              NewComplex(run, type_, ShapeOf(moved)));
      const int64_t n = data.dim(d), count = line.num_elements() / n;
      const DataType part = PartType(type_);
      TFPLUG_RETURN_IF_ERROR(run.launcher().Fourier(
          is_inverse_, Operand::Dense(line.data, part, {count, n, 2}),
          Operand::Dense(result.data, part, {count, n, 2})));
      if (is_last) {
        data = result;
      } else {
        TFPLUG_RETURN_IF_ERROR(CopyComplex(run, result, moved));
      }
    }
    return Store(run, data, y, sizes.first);
  }

 private:
  struct Sizes {
    int first;     // the first dimension that is transformed
    Shape data;    // of the complex numbers from which the transform starts
    Shape output;  // of the op's output
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
            "fft_length[" + std::to_string(i) +
            "] must >= 0, but got: " + std::to_string(n));
      }
      if (x.dim(d) < needed && x.dim(d) > 0) {
        return absl::InvalidArgumentError(
            "Input dimension " + std::to_string(d) +
            " must have length of at least " + std::to_string(needed) +
            " but got: " + std::to_string(x.dim(d)));
      }
      sizes.data.set_dim(d, n);
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
      return absl::InvalidArgumentError(
          "The last axis to perform transform on must be -1. It is " +
          std::to_string(last) + ", and the input has rank " +
          std::to_string(x.rank));
    }
    if (rank > 0) return rank;
    return absl::InvalidArgumentError(
        "the axes must have at least one element");
  }

  // Copies the part of the input that the transform uses. The second half of
  // the last dimension of an IRFFT follows from the first one.
  absl::Status Load(OpRun& run, Operand x, const Operand& data,
                    int first) const {
    const int last = x.rank - 1;
    const int64_t n = data.dim(last);
    for (int d = first; d <= last; ++d) {
      const int64_t count = to_real_ && d == last ? n / 2 + 1 : data.dim(d);
      x = ir::Range(x, d, 0, count);
    }
    if (from_real_) {
      TFPLUG_RETURN_IF_ERROR(Copy(run, x, PartOf(data, 0)));
      return Fill(run, PartOf(data, 1), 0);
    }
    if (!to_real_) return CopyComplex(run, x, data);
    TFPLUG_RETURN_IF_ERROR(
        CopyComplex(run, x, ir::Range(data, last, 0, n / 2 + 1)));
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
      Operand from = ir::Range(x, last, 1, 1 + rest);
      from.Advance((rest - 1) * from.stride(last));
      from.stride(last) = -from.stride(last);
      Operand to = ir::Range(data, last, n - rest, n);
      for (int d = first; d < last; ++d) {
        if ((zeros >> (d - first) & 1) != 0) {
          from = ir::Range(from, d, 0, 1);
          to = ir::Range(to, d, 0, 1);
        } else {
          from = ir::Range(from, d, 1, x.dim(d));
          from.Advance((from.dim(d) - 1) * from.stride(d));
          from.stride(d) = -from.stride(d);
          to = ir::Range(to, d, 1, data.dim(d));
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
                     int first) const {
    Operand from = data;
    const int last = from.rank - 1;
    if (from_real_) from = ir::Range(from, last, 0, y.dim(last));
    const Operand source = to_real_ ? PartOf(from, 0) : RealView(from);
    if (!is_inverse_) return Copy(run, source, RealView(y));
    double n = 1;
    for (int d = first; d <= last; ++d) n *= static_cast<double>(data.dim(d));
    return run.launcher().Map(
        scale_, {source, ir::ScalarOf(source.type, n, source)}, {RealView(y)});
  }

  int rank_ = 0;
  bool takes_axes_ = false;
  bool is_inverse_ = false, from_real_ = false, to_real_ = false;
  DataType type_{};
  Expression scale_, negate_;
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
