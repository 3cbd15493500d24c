// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/array.h>
#include <tfplug/ops/linalg.h>

#include <Eigen/QR>
#include <algorithm>
#include <cstdint>
#include <string>

#include "cpu_sim.h"
#include "kernels/host_tensor.h"

// The ops that the initializers of recurrent layers use.
namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// A tensor as a contiguous batch of matrices.
struct Matrices {
  int64_t count = 1, rows = 0, cols = 0;
};
absl::StatusOr<Matrices> MatricesOf(const tfplug::Tensor& x) {
  const int rank = x.rank();
  if (rank < 2) {
    return absl::InvalidArgumentError(
        "input must be a batch of matrices, not " + x.shape().ToString());
  }
  Matrices matrices;
  for (int d = 0; d < rank - 2; ++d) matrices.count *= x.dim(d);
  matrices.rows = x.dim(rank - 2);
  matrices.cols = x.dim(rank - 1);
  return matrices;
}

// ---- Qr: x = q * r, q orthogonal, r upper triangular -----------------------

// For each matrix, q is rows x inner and r is inner x cols.
void Decompose(float* q, float* r, const float* x, Matrices shape,
               int64_t inner) {
  using Matrix =
      Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  for (int64_t i = 0; i < shape.count; ++i) {
    const Eigen::HouseholderQR<Matrix> qr(Eigen::Map<const Matrix>(
        x + i * shape.rows * shape.cols, shape.rows, shape.cols));
    Eigen::Map<Matrix> out_q(q + i * shape.rows * inner, shape.rows, inner);
    out_q = qr.householderQ() * Matrix::Identity(shape.rows, inner);
    Eigen::Map<Matrix> out_r(r + i * inner * shape.cols, inner, shape.cols);
    out_r = qr.matrixQR().topRows(inner).triangularView<Eigen::Upper>();
  }
}

class Qr final : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(full_,
                            construction.GetAttr(ops::Qr::full_matrices));
    return absl::OkStatus();
  }

  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(ops::Qr::input));
    TFPLUG_ASSIGN_OR_RETURN(const Matrices matrices, MatricesOf(x));
    const int64_t inner =
        full_ ? matrices.rows : std::min(matrices.rows, matrices.cols);
    const int last = x.rank() - 1;
    tfplug::Shape q_shape = x.shape(), r_shape = x.shape();
    q_shape.set_dim(last, inner);
    r_shape.set_dim(last - 1, inner);
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor q,
                            context.AllocateOutput(ops::Qr::q, q_shape));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor r,
                            context.AllocateOutput(ops::Qr::r, r_shape));
    if (x.num_elements() == 0) {
      if (q.num_elements() == 0) return absl::OkStatus();
      return absl::UnimplementedError(
          "Qr with full_matrices of an empty matrix is not implemented on this "
          "device");
    }
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(&Decompose, q.flat<float>(), r.flat<float>(),
                          x.flat<float>(), matrices, inner);
  }

 private:
  bool full_ = false;
};
TFPLUG_REGISTER_KERNEL(Qr, ops::Qr().T<float>());

// ---- MatrixDiagPart: reads one diagonal or a band of them -------------------

struct Band {
  int64_t low = 0, high = 0;  // 0: the main diagonal; above it, positive
  bool upper_right = true;    // alignment of superdiagonals
  bool lower_right = false;
  int64_t longest = 0;
  float padding = 0;
};

// Calls use(first, begin, size) for each diagonal of each matrix, in the order
// of the packed rows, which have `band.longest` elements. `first` is the offset
// of the diagonal in the matrices, `begin` its offset in its packed row, and
// `size` its number of elements.
template <typename Use>
void ForEachDiagonal(const Matrices& shape, const Band& band, Use use) {
  for (int64_t i = 0; i < shape.count; ++i) {
    for (int64_t k = band.high; k >= band.low; --k) {
      const int64_t row = std::max<int64_t>(-k, 0);
      const int64_t col = std::max<int64_t>(k, 0);
      const int64_t size = std::min(shape.rows - row, shape.cols - col);
      const bool right = k >= 0 ? band.upper_right : band.lower_right;
      use(i * shape.rows * shape.cols + row * shape.cols + col,
          right ? band.longest - size : 0, size);
    }
  }
}

void TakeDiagonals(float* y, const float* x, Matrices shape, Band band) {
  ForEachDiagonal(shape, band, [&](int64_t first, int64_t begin, int64_t size) {
    std::fill_n(y, band.longest, band.padding);
    for (int64_t d = 0; d < size; ++d) {
      y[begin + d] = x[first + d * (shape.cols + 1)];
    }
    y += band.longest;
  });
}

// Reads the attribute `align` of both ops.
template <typename Op>
class DiagonalKernel : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) final {
    TFPLUG_ASSIGN_OR_RETURN(const std::string align,
                            construction.GetAttr(Op::align));
    aligned_.upper_right = align.substr(0, 5) == "RIGHT";
    aligned_.lower_right =
        align.size() > 5 && align.substr(align.size() - 5) == "RIGHT";
    return absl::OkStatus();
  }

 protected:
  // Returns the band of the diagonals k.front() to k.back().
  Band BandOf(const Dims& k, const tfplug::Tensor& padding) const {
    Band band = aligned_;
    band.low = k.front();
    band.high = k.back();
    band.padding = padding.scalar<float>();
    return band;
  }

 private:
  Band aligned_;
};

class MatrixDiagPart final : public DiagonalKernel<ops::MatrixDiagPartV3> {
 public:
  using Op = ops::MatrixDiagPartV3;

  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::input));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor k_tensor, context.GetInput(Op::k));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor padding,
                            context.GetInput(Op::padding_value));
    TFPLUG_ASSIGN_OR_RETURN(const Dims k, ReadDims(k_tensor));
    TFPLUG_ASSIGN_OR_RETURN(const Matrices matrices, MatricesOf(x));
    if (k.empty() || k.size() > 2 || k.front() > k.back() ||
        padding.num_elements() != 1) {
      return absl::InvalidArgumentError(
          "k must have one or two elements, and padding_value must be a "
          "scalar");
    }
    // A matrix without elements still has a main diagonal.
    if (k.front() <= -std::max<int64_t>(matrices.rows, 1) ||
        k.back() >= std::max<int64_t>(matrices.cols, 1)) {
      return absl::InvalidArgumentError("diagonals " +
                                        tfplug::Shape(k).ToString() +
                                        " are not in " + x.shape().ToString());
    }
    Band band = BandOf(k, padding);
    band.longest = std::min(matrices.rows + std::min<int64_t>(band.high, 0),
                            matrices.cols - std::max<int64_t>(band.low, 0));
    tfplug::Shape shape;
    for (int d = 0; d < x.rank() - 2; ++d) shape.add_dim(x.dim(d));
    if (band.low != band.high) shape.add_dim(band.high - band.low + 1);
    shape.add_dim(band.longest);
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.AllocateOutput(Op::diagonal, shape));
    if (y.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(&TakeDiagonals, y.flat<float>(), x.flat<float>(),
                          matrices, band);
  }
};
TFPLUG_REGISTER_KERNEL(MatrixDiagPart,
                       ops::MatrixDiagPartV3()
                           .T<float>()
                           .HostMemory(ops::MatrixDiagPartV3::k)
                           .HostMemory(ops::MatrixDiagPartV3::padding_value));

// ---- MatrixDiag: writes the diagonals ---------------------------------------

void PutDiagonals(float* y, const float* x, Matrices shape, Band band) {
  std::fill_n(y, shape.count * shape.rows * shape.cols, band.padding);
  ForEachDiagonal(shape, band, [&](int64_t first, int64_t begin, int64_t size) {
    for (int64_t d = 0; d < size; ++d) {
      y[first + d * (shape.cols + 1)] = x[begin + d];
    }
    x += band.longest;
  });
}

class MatrixDiag final : public DiagonalKernel<ops::MatrixDiagV3> {
 public:
  using Op = ops::MatrixDiagV3;

  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::diagonal));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor k_tensor, context.GetInput(Op::k));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor rows,
                            context.GetInput(Op::num_rows));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor cols,
                            context.GetInput(Op::num_cols));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor padding,
                            context.GetInput(Op::padding_value));
    TFPLUG_ASSIGN_OR_RETURN(const Dims k, ReadDims(k_tensor));
    if (k.empty() || k.size() > 2 || k.front() > k.back() ||
        rows.num_elements() != 1 || cols.num_elements() != 1 ||
        padding.num_elements() != 1) {
      return absl::InvalidArgumentError(
          "k must have one or two elements; num_rows, num_cols and "
          "padding_value must be scalars");
    }
    Band band = BandOf(k, padding);
    const bool one = band.low == band.high;
    const int batch_rank = x.rank() - (one ? 1 : 2);
    if (batch_rank < 0 ||
        (!one && x.dim(batch_rank) != band.high - band.low + 1)) {
      return absl::InvalidArgumentError(x.shape().ToString() +
                                        " does not hold the diagonals " +
                                        tfplug::Shape(k).ToString());
    }
    band.longest = x.dim(x.rank() - 1);
    // By default, the smallest matrix that holds these diagonals.
    const int64_t min_rows = band.longest - std::min<int64_t>(band.high, 0);
    const int64_t min_cols = band.longest + std::max<int64_t>(band.low, 0);
    Matrices matrices;
    matrices.rows = rows.scalar<int32_t>();
    matrices.cols = cols.scalar<int32_t>();
    if (matrices.rows == -1 && matrices.cols == -1) {
      matrices.rows = matrices.cols = std::max(min_rows, min_cols);
    } else if (matrices.rows == -1) {
      matrices.rows = min_rows;
    } else if (matrices.cols == -1) {
      matrices.cols = min_cols;
    }
    if (matrices.rows < min_rows || matrices.cols < min_cols ||
        (matrices.rows != min_rows && matrices.cols != min_cols) ||
        band.low <= -std::max<int64_t>(matrices.rows, 1) ||
        band.high >= std::max<int64_t>(matrices.cols, 1)) {
      return absl::InvalidArgumentError(
          "diagonals " + tfplug::Shape(k).ToString() + " of " +
          std::to_string(band.longest) + " elements do not fit a " +
          std::to_string(matrices.rows) + " x " +
          std::to_string(matrices.cols) + " matrix");
    }
    tfplug::Shape shape;
    for (int d = 0; d < batch_rank; ++d) {
      shape.add_dim(x.dim(d));
      matrices.count *= x.dim(d);
    }
    shape.add_dim(matrices.rows);
    shape.add_dim(matrices.cols);
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.AllocateOutput(Op::output, shape));
    if (y.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(&PutDiagonals, y.flat<float>(), x.flat<float>(),
                          matrices, band);
  }
};
TFPLUG_REGISTER_KERNEL(MatrixDiag,
                       ops::MatrixDiagV3()
                           .T<float>()
                           .HostMemory(ops::MatrixDiagV3::k)
                           .HostMemory(ops::MatrixDiagV3::num_rows)
                           .HostMemory(ops::MatrixDiagV3::num_cols)
                           .HostMemory(ops::MatrixDiagV3::padding_value));

}  // namespace
}  // namespace cpu_sim
