// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_DIAGONAL_H_
#define TFPLUG_OP_KERNELS_DIAGONAL_H_

#include <algorithm>
#include <string>

#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Ops on the diagonals of matrices. A diagonal is a view: its stride is the sum
// of the strides of rows and columns.
namespace tfplug {
namespace op_kernels_internal {

// The diagonals [lower, upper] of matrices: diagonal 0 is the main one, those
// above it are positive. A tensor of several diagonals has a row for each, from
// the upper one on.
struct Diagonals {
  int64_t rows, columns;
  int64_t lower, upper;

  int64_t count() const { return upper - lower + 1; }
  int64_t Length(int64_t d) const {
    return std::min(rows + std::min<int64_t>(d, 0),
                    columns - std::max<int64_t>(d, 0));
  }
  int64_t max_length() const {
    return std::min(rows + std::min<int64_t>(upper, 0),
                    columns - std::max<int64_t>(lower, 0));
  }
};

// Returns diagonal `d` of a view [..., rows, columns] as [..., length].
inline Operand DiagonalOf(Operand matrix, const Diagonals& shape, int64_t d) {
  const int row = matrix.rank - 2;
  const int64_t stride = matrix.stride(row) + matrix.stride(row + 1);
  matrix.Advance(d < 0 ? -d * matrix.stride(row) : d * matrix.stride(row + 1));
  matrix.rank = row;
  return matrix.AddDim(shape.Length(d), stride);
}

// MatrixDiag, MatrixDiagPart and MatrixSetDiag, with the variants V2 and V3.
class MatrixDiagKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    is_part_ = op.rfind("MatrixDiagPart", 0) == 0;
    sets_ = op.rfind("MatrixSetDiag", 0) == 0;
    has_k_ = op.back() == '2' || op.back() == '3';
    if (construction.HasAttr("align")) {
      TFPLUG_ASSIGN_OR_RETURN(const auto align,
                              construction.GetAttr<std::string>("align"));
      left_above_ = align == "LEFT_LEFT" || align == "LEFT_RIGHT";
      left_below_ = align == "LEFT_LEFT" || align == "RIGHT_LEFT";
    }
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    Diagonals shape = {};
    if (has_k_) {
      const int at = sets_ ? 2 : 1;
      TFPLUG_ASSIGN_OR_RETURN(const Tensor tensor, run.GetInput(at));
      TFPLUG_ASSIGN_OR_RETURN(const Ints k, run.GetInts(at));
      if (tensor.rank() > 1) {
        return absl::InvalidArgumentError(
            "diag_index must be a scalar or vector, received shape: " +
            tensor.shape().ToString());
      }
      if (k.empty()) {
        return absl::InvalidArgumentError(
            is_part_ ? "Expected diag_index to have at least 1 element"
                     : "diag_index must have at least one element");
      }
      if (k.size() > 2) {
        return absl::InvalidArgumentError(
            "diag_index must have only one or two elements, received " +
            std::to_string(k.size()) + " elements.");
      }
      shape.lower = k[0];
      shape.upper = k.back();
      if (shape.lower > shape.upper) {
        return absl::InvalidArgumentError(
            "k[0] must not be larger than k[1]: " +
            std::to_string(shape.lower) + " > " + std::to_string(shape.upper));
      }
    }
    if (!is_part_ && !sets_) return MakeMatrix(run, x, shape);
    if (x.rank < 2) {
      return absl::InvalidArgumentError(
          "input must be at least 2-dim, received shape: " +
          ShapeOf(x).ToString());
    }
    shape.rows = x.dim(x.rank - 2);
    shape.columns = x.dim(x.rank - 1);
    for (int64_t k : {shape.lower, shape.upper}) {
      if (k != 0 && (k <= -shape.rows || k >= shape.columns)) {
        return absl::InvalidArgumentError(
            absl::StrCat("k is out of bound: ", k, ". It must be between ",
                         -shape.rows, " and ", shape.columns));
      }
    }
    return is_part_ ? Part(run, x, shape) : Set(run, x, shape);
  }

 private:
  absl::Status MakeMatrix(OpRun& run, const Operand& diagonals,
                          Diagonals shape) const {
    const int batch = diagonals.rank - (shape.count() > 1 ? 2 : 1);
    if (batch < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "diagonal must be at least ", shape.count() > 1 ? 2 : 1,
          "-dim, received shape: ", ShapeOf(diagonals).ToString()));
    }
    if (shape.count() > 1 && diagonals.dim(batch) != shape.count()) {
      return absl::InvalidArgumentError(
          "The number of diagonals provided in the input does not match the "
          "lower_diag_index and upper_diag_index range.");
    }
    const int64_t length = diagonals.dim(diagonals.rank - 1);
    const int64_t rows = length - std::min<int64_t>(shape.upper, 0);
    const int64_t columns = length + std::max<int64_t>(shape.lower, 0);
    shape.rows = shape.columns = -1;
    if (has_k_) {
      TFPLUG_ASSIGN_OR_RETURN(shape.rows, run.GetScalar(2));
      TFPLUG_ASSIGN_OR_RETURN(shape.columns, run.GetScalar(3));
    }
    if (shape.rows == -1 && shape.columns == -1) {
      shape.rows = shape.columns = std::max(rows, columns);
    }
    if (shape.rows == -1) shape.rows = rows;
    if (shape.columns == -1) shape.columns = columns;
    if (shape.rows < rows || shape.columns < columns ||
        (shape.rows != rows && shape.columns != columns)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "The number of rows or columns is not consistent with the specified "
          "k and diagonal: at least ",
          rows, " and ", columns, ", one of them exactly, not ", shape.rows,
          " and ", shape.columns));
    }
    Shape result(ir::DimsOf(diagonals).first(static_cast<size_t>(batch)));
    result.add_dim(shape.rows);
    result.add_dim(shape.columns);
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, result));
    TFPLUG_RETURN_IF_ERROR(SetPadding(run, 4, y));
    return CopyRows(run, diagonals, shape, y);
  }

  // Copies each row to its diagonal of `y`.
  absl::Status CopyRows(OpRun& run, const Operand& diagonals,
                        const Diagonals& shape, const Operand& y) const {
    for (int64_t d = shape.lower; d <= shape.upper; ++d) {
      TFPLUG_RETURN_IF_ERROR(
          Copy(run, Row(diagonals, shape, d), DiagonalOf(y, shape, d)));
    }
    return absl::OkStatus();
  }

  absl::Status Part(OpRun& run, const Operand& x, const Diagonals& shape) {
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, PartShape(x, shape)));
    if (shape.count() > 1) TFPLUG_RETURN_IF_ERROR(SetPadding(run, 2, y));
    for (int64_t d = shape.lower; d <= shape.upper; ++d) {
      TFPLUG_RETURN_IF_ERROR(
          Copy(run, DiagonalOf(x, shape, d), Row(y, shape, d)));
    }
    return absl::OkStatus();
  }

  absl::Status Set(OpRun& run, const Operand& x, const Diagonals& shape) {
    TFPLUG_ASSIGN_OR_RETURN(const Operand diagonals, GetView(run, 1));
    const Shape expected = PartShape(x, shape);
    if (diagonals.rank == 0) {
      return absl::InvalidArgumentError(
          "diagonal must be at least 1-dim, received shape: []");
    }
    if (ShapeOf(diagonals) != expected) {
      return absl::InvalidArgumentError(
          "Either first dimensions of diagonal don't match input.shape[:-2], "
          "or "
          "the others do not fit: diagonal must have shape " +
          expected.ToString() + ", not " + ShapeOf(diagonals).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    TFPLUG_RETURN_IF_ERROR(Copy(run, x, y));
    return CopyRows(run, diagonals, shape, y);
  }

  // Returns the shape of the diagonals of `x`.
  static Shape PartShape(const Operand& x, const Diagonals& shape) {
    Shape part(ir::DimsOf(x).first(static_cast<size_t>(x.rank) - 2));
    if (shape.count() > 1) part.add_dim(shape.count());
    part.add_dim(shape.max_length());
    return part;
  }

  // Returns the row of a tensor of diagonals that has diagonal `d`. A row that
  // is longer than its diagonal is padded on the right ("left-aligned") or on
  // the left.
  Operand Row(Operand diagonals, const Diagonals& shape, int64_t d) const {
    if (shape.count() > 1) {
      const int dim = diagonals.rank - 2;
      diagonals.Advance((shape.upper - d) * diagonals.stride(dim));
      diagonals = ir::WithDimLast(diagonals, dim);
      --diagonals.rank;
    }
    const int last = diagonals.rank - 1;
    const int64_t length = shape.Length(d);
    const bool is_left = (d >= 0 && left_above_) || (d <= 0 && left_below_);
    const int64_t begin = is_left ? 0 : diagonals.dim(last) - length;
    return ir::Range(diagonals, last, begin, begin + length);
  }

  // Sets all elements to the op's padding value, input `i` if there is one.
  absl::Status SetPadding(OpRun& run, int i, const Operand& to) const {
    if (!has_k_) return Fill(run, ir::AsWords(to), 0);
    TFPLUG_ASSIGN_OR_RETURN(const Operand value, GetView(run, i));
    // TensorFlow's CPU accepts a vector for MatrixDiagPart.
    if (value.num_elements() != 1 || (value.rank != 0 && i != 2)) {
      return absl::InvalidArgumentError("padding_value must be a scalar");
    }
    return Copy(run, ir::AlongDim(value, to, -1), to);
  }

  bool is_part_ = false, sets_ = false;
  bool has_k_ = false;
  bool left_above_ = true, left_below_ = true;
};

// Diag and DiagPart, for which a tensor is a vector and its diagonal matrix has
// each of its dimensions twice.
class DiagKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    is_part_ = op == "DiagPart";
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    const int half = is_part_ ? x.rank / 2 : x.rank;
    Shape shape(ir::DimsOf(x).first(static_cast<size_t>(half)));
    const int64_t n = shape.num_elements();
    if (is_part_) {
      bool fits = x.rank > 0 && x.rank % 2 == 0;
      for (int d = 0; fits && d < half; ++d) fits = x.dim(d) == x.dim(half + d);
      if (!fits) {
        return absl::InvalidArgumentError(
            "The rank of the tensor should be even and positive, and its "
            "dimensions should repeat, not " +
            ShapeOf(x).ToString());
      }
    } else {
      if (x.rank < 1) {
        return absl::InvalidArgumentError("Input must be at least rank 1");
      }
      for (int d = 0; d < half; ++d) shape.add_dim(x.dim(d));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    if (!is_part_) TFPLUG_RETURN_IF_ERROR(Fill(run, ir::AsWords(y), 0));
    const Operand& large = is_part_ ? x : y;
    const Operand& small = is_part_ ? y : x;
    const Operand diagonal = DiagonalOf(
        Operand::Dense(large.data, large.type, {n, n}), {n, n, 0, 0}, 0);
    const Operand vector = ir::Flat(small);
    return is_part_ ? Copy(run, diagonal, vector) : Copy(run, vector, diagonal);
  }

 private:
  bool is_part_ = false;
};

}  // namespace op_kernels_internal

inline void DiagonalOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  for (const char* op : {"MatrixDiag", "MatrixDiagPart", "MatrixSetDiag"}) {
    registrar.Add<MatrixDiagKernel>(KernelDef(op), "T", kCopiedTypes);
  }
  for (const char* op : {"MatrixDiagV2", "MatrixDiagV3"}) {
    registrar.Add<MatrixDiagKernel>(KernelDef(op)
                                        .HostMemory("k")
                                        .HostMemory("num_rows")
                                        .HostMemory("num_cols"),
                                    "T", kCopiedTypes);
  }
  for (const char* op : {"MatrixDiagPartV2", "MatrixDiagPartV3",
                         "MatrixSetDiagV2", "MatrixSetDiagV3"}) {
    registrar.Add<MatrixDiagKernel>(KernelDef(op).HostMemory("k"), "T",
                                    kCopiedTypes);
  }
  for (const char* op : {"Diag", "DiagPart"}) {
    registrar.Add<DiagKernel>(KernelDef(op), "T", kNumberTypes | kComplexTypes);
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_DIAGONAL_H_
