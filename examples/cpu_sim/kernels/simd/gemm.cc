// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm.h"

#include "kernels/simd/code.h"

namespace cpu_sim::CPU_SIM_LEVEL {
namespace {

using Matrix =
    Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMap = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;

// Calls use(matrix) with an Eigen expression of rows x cols.
template <typename Use>
void WithMatrix(const GemmOperand& operand, int64_t rows, int64_t cols,
                Use use) {
  const Eigen::OuterStride<> stride(operand.stride);
  if (operand.transpose) {
    use(ConstMap(operand.data, cols, rows, stride).transpose());
  } else {
    use(ConstMap(operand.data, rows, cols, stride));
  }
}

}  // namespace

void Multiply(int64_t m, int64_t n, int64_t k, const GemmOperand& a,
              const GemmOperand& b, float* c, int64_t c_stride, GemmMode mode) {
  Eigen::Map<Matrix, 0, Eigen::OuterStride<>> out(
      c, m, n, Eigen::OuterStride<>(c_stride));
  if (mode == GemmMode::kAssign) out.setZero();
  WithMatrix(a, m, k, [&](const auto& a_matrix) {
    WithMatrix(b, k, n, [&](const auto& b_matrix) {
      out.noalias() += a_matrix * b_matrix;
    });
  });
}

}  // namespace cpu_sim::CPU_SIM_LEVEL
