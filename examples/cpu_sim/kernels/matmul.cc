// SPDX-License-Identifier: Apache-2.0
#include <tfplug/register_kernel.h>
#include <tfplug/status_macros.h>

#include <Eigen/Core>
#include <cstdint>

#include "cpu_sim.h"

namespace cpu_sim {
namespace {

template <typename T>
using Matrix =
    Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// A dense matrix in memory, and whether its transpose is meant.
struct MatrixInfo {
  int64_t rows;
  int64_t cols;
  bool transpose;

  int64_t effective_rows() const { return transpose ? cols : rows; }
  int64_t effective_cols() const { return transpose ? rows : cols; }
};

// Calls use(matrix) with an Eigen expression.
template <typename T, typename Use>
void WithMatrix(const T* data, const MatrixInfo& info, Use use) {
  const Eigen::Map<const Matrix<T>> matrix(data, info.rows, info.cols);
  if (info.transpose) {
    use(matrix.transpose());
  } else {
    use(matrix);
  }
}

template <typename T>
void Multiply(T* product, const T* a, MatrixInfo a_info, const T* b,
              MatrixInfo b_info) {
  Eigen::Map<Matrix<T>> out(product, a_info.effective_rows(),
                            b_info.effective_cols());
  WithMatrix(a, a_info, [&](const auto& a_matrix) {
    WithMatrix(b, b_info, [&](const auto& b_matrix) {
      out.noalias() = a_matrix * b_matrix;
    });
  });
}

template <typename T>
class MatMul final : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(transpose_a_,
                            construction.GetAttr<bool>("transpose_a"));
    TFPLUG_ASSIGN_OR_RETURN(transpose_b_,
                            construction.GetAttr<bool>("transpose_b"));
    return absl::OkStatus();
  }

  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor a, context.input(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor b, context.input(1));
    if (a.rank() != 2 || b.rank() != 2) {
      return absl::InvalidArgumentError("want two matrices, not " +
                                        a.shape().ToString() + " and " +
                                        b.shape().ToString());
    }
    const MatrixInfo a_info{a.dim(0), a.dim(1), transpose_a_};
    const MatrixInfo b_info{b.dim(0), b.dim(1), transpose_b_};
    if (a_info.effective_cols() != b_info.effective_rows()) {
      return absl::InvalidArgumentError(
          "Matrix size-incompatible: In[0]: " + a.shape().ToString() +
          ", In[1]: " + b.shape().ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor product,
        context.allocate_output(
            0, {a_info.effective_rows(), b_info.effective_cols()}));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.stream<Stream>());
    return stream->Launch(&Multiply<T>, product.flat<T>(), a.flat<T>(), a_info,
                          b.flat<T>(), b_info);
  }

 private:
  bool transpose_a_ = false;
  bool transpose_b_ = false;
};

TFPLUG_REGISTER_KERNEL(MatMul<float>,
                       tfplug::KernelDef("MatMul").TypeConstraint<float>("T"));

}  // namespace
}  // namespace cpu_sim
