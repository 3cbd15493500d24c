// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_MATRIX_KERNEL_H_
#define TFPLUG_OP_KERNELS_MATRIX_KERNEL_H_

#include <Eigen/Core>
#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/host_task_kernel.h"
#include "tfplug/op_kernels/internal/eigen_version.h"
#include "tfplug/op_kernels/internal/shards.h"

#pragma GCC visibility push(hidden)

// The kernel of the ops in linalg.h. This header needs Eigen.
namespace tfplug::op_kernels_internal {

// Everything is computed in double, or in complex numbers of doubles, which
// narrower types are converted to: that compiles Eigen's templates twice instead
// of four times. The elements of a column are adjacent, as in the matrices that
// Eigen's decompositions use themselves, so that it compiles them for one order.
template <class T>
using MatrixOf = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
// The matrices of one element of the batch: a vector is a column.
template <class T>
using MatricesOf = std::vector<MatrixOf<T>>;

// The rows and columns of a matrix and, if the op has one, of the right side.
struct MatrixSizes {
  int64_t rows, columns;
  int64_t right_rows = 0, right_columns = 0;
};

// Sets the sizes of the matrices of the inputs, and the shape of the batch that
// they are in. The first matrix may have to be square, and the batches may be
// broadcast; otherwise, they have to be equal.
inline absl::Status ReadShapes(absl::Span<const Shape> inputs, bool is_square,
                               bool broadcasts, MatrixSizes* sizes,
                               Shape* batch) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& x = inputs[i];
    if (x.rank() < 2) {
      return absl::InvalidArgumentError(
          "Input tensor " + std::to_string(i) + " must have rank >= 2, got " +
          std::to_string(x.rank()) + ": " + x.ToString());
    }
    Shape outer(x.dims().first(static_cast<size_t>(x.rank()) - 2));
    if (i == 0) *batch = outer;
    if (broadcasts) {
      TFPLUG_RETURN_IF_ERROR(BroadcastShape(outer, batch));
    } else if (outer != *batch) {
      return absl::InvalidArgumentError(
          (x.rank() != inputs[0].rank()
               ? "All input tensors must have the same rank."
               : "All input tensors must have the same outer dimensions.") +
          (" They have shapes " + inputs[0].ToString()) + " and " +
          x.ToString());
    }
    (i == 0 ? sizes->rows : sizes->right_rows) = x.dim(x.rank() - 2);
    (i == 0 ? sizes->columns : sizes->right_columns) = x.dim(x.rank() - 1);
  }
  if (is_square && sizes->rows != sizes->columns) {
    return absl::InvalidArgumentError(
        (inputs.size() > 1 ? "First input (lhs) must be a square matrix, not "
                           : "Input matrix must be square, not ") +
        inputs[0].ToString());
  }
  if (inputs.size() > 1 && sizes->rows != sizes->right_rows) {
    return absl::InvalidArgumentError(
        "Input matrix and rhs are incompatible: " + inputs[0].ToString() +
        " and " + inputs[1].ToString());
  }
  return absl::OkStatus();
}

// The kernel of an op on batches of matrices. Op has kIsSquare, kBroadcasts
// (whether batches are broadcast), kHasComplex (whether the matrices may be
// complex), Init, Shapes (of the outputs of one matrix) and Run, a template of
// the type that is computed in.
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
    TFPLUG_RETURN_IF_ERROR(
        ReadShapes(inputs, Op::kIsSquare, Op::kBroadcasts, &sizes, &batch));
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
    if constexpr (Op::kHasComplex) {
      if (IsComplex(inputs[0].type)) {
        return ComputeIn<std::complex<double>>(inputs, outputs);
      }
    }
    return ComputeIn<double>(inputs, outputs);
  }

 private:
  static constexpr int64_t kLeastSizeOfShard = 1 << 14;

  template <class T>
  absl::Status ComputeIn(absl::Span<const HostArray> inputs,
                         absl::Span<const HostArray> outputs) const {
    int batch_rank = 0;
    for (const HostArray& array : inputs) {
      batch_rank = std::max(batch_rank, array.shape.rank() - 2);
    }
    const absl::Span<const int64_t> batch =
        outputs[0].shape.dims().first(static_cast<size_t>(batch_rank));
    int64_t count = 1, size_of_all = 0;
    for (int64_t size : batch) count *= size;
    for (const HostArray& array : inputs) {
      size_of_all += array.shape.num_elements();
    }
    // Tiny matrices are computed faster than a thread starts.
    return ForEachShard(count, size_of_all / kLeastSizeOfShard,
                        [&](int64_t begin, int64_t end) {
                          return ComputeShard<T>(inputs, outputs, batch, begin,
                                                 end);
                        });
  }

  // Computes matrices of the batch.
  template <class T>
  absl::Status ComputeShard(absl::Span<const HostArray> inputs,
                            absl::Span<const HostArray> outputs,
                            absl::Span<const int64_t> batch, int64_t begin,
                            int64_t end) const {
    MatricesOf<T> in, out;
    for (const HostArray& array : inputs) {
      in.push_back(NewMatrix<T>(array, array.shape.rank() - 2));
    }
    for (const HostArray& array : outputs) {
      out.push_back(NewMatrix<T>(array, static_cast<int>(batch.size())));
    }
    for (int64_t i = begin; i < end; ++i) {
      for (size_t k = 0; k < in.size(); ++k) {
        Visit(inputs[k], IndexIn(inputs[k].shape, batch, i), in[k],
              [](auto& from, T& to) { to = T(from); });
      }
      TFPLUG_RETURN_IF_ERROR(op_.Run(in, out));
      for (size_t k = 0; k < out.size(); ++k) {
        Visit(outputs[k], i, out[k], [](auto& to, const T& from) {
          using To = std::decay_t<decltype(to)>;
          if constexpr (std::is_arithmetic_v<To>) {
            to = static_cast<To>(std::real(from));  // such as indices
          } else {
            to = To(from);
          }
        });
      }
    }
    return absl::OkStatus();
  }

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
  template <class T>
  static MatrixOf<T> NewMatrix(const HostArray& array, int batch_rank) {
    const int rank = array.shape.rank() - batch_rank;
    return MatrixOf<T>::Zero(rank > 0 ? array.shape.dim(batch_rank) : 1,
                             rank > 1 ? array.shape.dim(batch_rank + 1) : 1);
  }
  // Calls use(element of the array, element of the matrix).
  template <class T, class Use>
  static void Visit(const HostArray& array, int64_t i, MatrixOf<T>& matrix,
                    Use use) {
    const auto visit = [&](auto* data) {
      data += i * matrix.size();
      for (int64_t row = 0; row < matrix.rows(); ++row) {
        for (int64_t k = 0; k < matrix.cols(); ++k)
          use(*data++, matrix(row, k));
      }
    };
    if constexpr (!std::is_arithmetic_v<T>) {
      if (array.type == DataType::kComplex64)
        return visit(array.as<std::complex<float>>());
      if (array.type == DataType::kComplex128)
        return visit(array.as<std::complex<double>>());
    }
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
