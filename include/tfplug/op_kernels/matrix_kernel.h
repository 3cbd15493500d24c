// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_MATRIX_KERNEL_H_
#define TFPLUG_OP_KERNELS_MATRIX_KERNEL_H_

#include <Eigen/Core>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/host_task_kernel.h"
#include "tfplug/op_kernels/internal/eigen_version.h"

#pragma GCC visibility push(hidden)

// The kernel of the ops in linalg.h. This header needs Eigen.
namespace tfplug::op_kernels_internal {

// Everything is computed in double, which float is converted to: that compiles
// Eigen's templates once. A complex number is the matrix [re, -im; im, re],
// whose sums, products and inverses are those of the number.
using Matrix =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
// The matrices of one element of the batch: a vector is a column.
using Matrices = std::vector<Matrix>;

// The rows and columns of a matrix and, if the op has one, of the right side.
struct MatrixSizes {
  int64_t rows, columns;
  int64_t right_rows = 0, right_columns = 0;
};

// The kernel of an op on batches of matrices. Op has kIsSquare, kBroadcasts
// (whether batches are broadcast), Init, Shapes (of the outputs of one matrix)
// and Run.
template <class Op>
class MatrixKernel final : public HostTaskKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    return op_.Init(construction);
  }

  absl::StatusOr<std::vector<Shape>> ShapesOf(
      absl::Span<const Shape> inputs) const override {
    Shape batch;
    MatrixSizes sizes = {};
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Shape& x = inputs[i];
      if (x.rank() < 2) {
        return absl::InvalidArgumentError("Input tensor " + std::to_string(i) +
                                          " must have rank >= 2, not shape " +
                                          x.ToString());
      }
      Shape outer(x.dims().first(static_cast<size_t>(x.rank()) - 2));
      if (i == 0) batch = outer;
      if (Op::kBroadcasts) {
        TFPLUG_RETURN_IF_ERROR(BroadcastShape(outer, &batch));
      } else if (outer != batch) {
        return absl::InvalidArgumentError(
            (x.rank() != inputs[0].rank()
                 ? "All input tensors must have the same rank."
                 : "All input tensors must have the same outer dimensions.") +
            (" They have shapes " + inputs[0].ToString()) + " and " +
            x.ToString());
      }
      (i == 0 ? sizes.rows : sizes.right_rows) = x.dim(x.rank() - 2);
      (i == 0 ? sizes.columns : sizes.right_columns) = x.dim(x.rank() - 1);
    }
    if (Op::kIsSquare && sizes.rows != sizes.columns) {
      return absl::InvalidArgumentError(
          (inputs.size() > 1 ? "First input (lhs) must be a square matrix, not "
                             : "Input matrix must be square, not ") +
          inputs[0].ToString());
    }
    if (inputs.size() > 1 && sizes.rows != sizes.right_rows) {
      return absl::InvalidArgumentError(
          "Input matrix and rhs are incompatible: " + inputs[0].ToString() +
          " and " + inputs[1].ToString());
    }
    std::vector<Shape> shapes;
    for (const Shape& matrix : op_.Shapes(sizes)) {
      Shape shape = batch;
      for (int64_t size : matrix.dims()) shape.add_dim(size);
      shapes.push_back(shape);
    }
    return shapes;
  }

  absl::Status Compute(absl::Span<const HostArray> inputs,
                       absl::Span<const HostArray> outputs) const override {
    int batch_rank = 0;
    for (const HostArray& array : inputs) {
      batch_rank = std::max(batch_rank, array.shape.rank() - 2);
    }
    const absl::Span<const int64_t> batch =
        outputs[0].shape.dims().first(static_cast<size_t>(batch_rank));
    int64_t count = 1;
    for (int64_t size : batch) count *= size;
    for (int64_t i = 0; i < count; ++i) {
      Matrices in, out;
      for (const HostArray& array : inputs) {
        in.push_back(NewMatrix(array, array.shape.rank() - 2));
        const int64_t index = IndexIn(array.shape, batch, i);
        if (IsComplex(array.type)) {
          VisitComplex(array, index, in.back(), [](auto* from, auto block) {
            const auto re = static_cast<double>(from[0]);
            const auto im = static_cast<double>(from[1]);
            block << re, -im, im, re;
          });
          continue;
        }
        Visit(array, index, in.back(),
              [](auto& from, double& to) { to = static_cast<double>(from); });
      }
      for (const HostArray& array : outputs) {
        out.push_back(NewMatrix(array, batch_rank));
      }
      TFPLUG_RETURN_IF_ERROR(op_.Run(in, out));
      for (size_t k = 0; k < out.size(); ++k) {
        if (IsComplex(outputs[k].type)) {
          VisitComplex(outputs[k], i, out[k], [](auto* to, auto block) {
            using T = std::decay_t<decltype(*to)>;
            to[0] = static_cast<T>(block(0, 0));
            to[1] = static_cast<T>(block(1, 0));
          });
          continue;
        }
        Visit(outputs[k], i, out[k], [](auto& to, double& from) {
          to = static_cast<std::decay_t<decltype(to)>>(from);
        });
      }
    }
    return absl::OkStatus();
  }

 private:
  // Returns the index in `shape`, which broadcasts to the batch, of matrix `i`
  // of the batch.
  static int64_t IndexIn(const Shape& shape, absl::Span<const int64_t> batch,
                         int64_t i) {
    int64_t index = 0, stride = 1;
    const auto rank = static_cast<int>(batch.size());
    for (int d = rank, own = shape.rank() - 2; --own >= 0;) {
      const int64_t size = batch[static_cast<size_t>(--d)];
      if (shape.dim(own) > 1) index += i % size * stride;
      i /= size;
      stride *= shape.dim(own);
    }
    return index;
  }
  static Matrix NewMatrix(const HostArray& array, int batch_rank) {
    const int rank = array.shape.rank() - batch_rank;
    const int64_t size = IsComplex(array.type) ? 2 : 1;
    return Matrix::Zero(
        size * (rank > 0 ? array.shape.dim(batch_rank) : 1),
        size * (rank > 1 ? array.shape.dim(batch_rank + 1) : 1));
  }
  // Calls use(parts of the element of the array, block of the matrix).
  template <class Use>
  static void VisitComplex(const HostArray& array, int64_t i, Matrix& matrix,
                           Use use) {
    const int64_t rows = matrix.rows() / 2, columns = matrix.cols() / 2;
    const auto visit = [&](auto* parts) {
      parts += i * rows * columns * 2;
      for (int64_t k = 0; k < rows * columns; ++k) {
        use(parts + 2 * k,
            matrix.template block<2, 2>(k / columns * 2, k % columns * 2));
      }
    };
    if (array.type == DataType::kComplex64) return visit(array.as<float>());
    return visit(array.as<double>());
  }
  // Calls use(element of the array, element of the matrix).
  template <class Use>
  static void Visit(const HostArray& array, int64_t i, Matrix& matrix,
                    Use use) {
    const auto visit = [&](auto* data) {
      data += i * matrix.size();
      for (int64_t k = 0; k < matrix.size(); ++k)
        use(data[k], matrix.data()[k]);
    };
    switch (array.type) {
      case DataType::kFloat:
        return visit(array.as<float>());
      case DataType::kDouble:
        return visit(array.as<double>());
      case DataType::kInt32:
        return visit(array.as<int32_t>());
      default:
        return visit(array.as<int64_t>());
    }
  }

  Op op_;
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_MATRIX_KERNEL_H_
