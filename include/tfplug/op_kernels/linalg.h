// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_LINALG_H_
#define TFPLUG_OP_KERNELS_LINALG_H_

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tfplug/op_kernels/matrix_kernel.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Linear algebra, which Eigen computes on the host, as TensorFlow's CPU does.
// This header needs Eigen and is therefore not in all.h.
namespace tfplug {
namespace op_kernels_internal {

[[gnu::cold, gnu::noinline]] inline absl::Status NotInvertible(
    const char* input = "Input matrix") {
  return absl::InvalidArgumentError(std::string(input) + " is not invertible.");
}
[[gnu::cold, gnu::noinline]] inline absl::Status NotDecomposed(
    const char* name) {
  return absl::InvalidArgumentError(
      std::string(name) + " was not successful. The input might not be valid.");
}

struct MatrixOp {
  static constexpr bool kIsSquare = true, kBroadcasts = false;
  static constexpr bool kHasComplex = true;

  absl::Status Init(KernelConstruction& construction) {
    for (const auto& [attr, value] :
         {std::pair<const char*, bool*>{"adjoint", &adjoint},
          {"lower", &lower},
          {"full_matrices", &full},
          {"compute_v", &compute_vectors},
          {"compute_uv", &compute_vectors}}) {
      if (!construction.HasAttr(attr)) continue;
      TFPLUG_ASSIGN_OR_RETURN(*value, construction.GetAttr<bool>(attr));
    }
    return absl::OkStatus();
  }
  template <class T>
  MatrixOf<T> Adjoint(const MatrixOf<T>& x) const {
    if (adjoint) return x.adjoint();
    return x;
  }

  bool adjoint = false, lower = true, full = false, compute_vectors = true;
};

template <class T>
bool IsSingular(const Eigen::PartialPivLU<MatrixOf<T>>& lu) {
  return !(lu.matrixLU().diagonal().cwiseAbs().minCoeff() > 0);
}

// The result is NaN if the matrix is not positive definite.
struct CholeskyOp : MatrixOp {
  std::vector<Shape> Shapes(const MatrixSizes& s) const {
    return {{s.rows, s.rows}};
  }
  template <class T>
  absl::Status Run(const MatricesOf<T>& in, MatricesOf<T>& out) const {
    if (in[0].size() == 0) return absl::OkStatus();
    const Eigen::LLT<MatrixOf<T>> llt(in[0]);
    if (llt.info() != Eigen::Success) {
      out[0].setConstant(T(std::numeric_limits<double>::quiet_NaN()));
      return absl::OkStatus();
    }
    out[0] = llt.matrixL();
    return absl::OkStatus();
  }
};

struct InverseOp : MatrixOp {
  std::vector<Shape> Shapes(const MatrixSizes& s) const {
    return {{s.rows, s.rows}};
  }
  template <class T>
  absl::Status Run(const MatricesOf<T>& in, MatricesOf<T>& out) const {
    if (in[0].size() == 0) return absl::OkStatus();
    const Eigen::PartialPivLU<MatrixOf<T>> lu(Adjoint(in[0]));
    if (IsSingular<T>(lu)) return NotInvertible("Input");
    out[0] = lu.inverse();
    return absl::OkStatus();
  }
};

struct SolveOp : MatrixOp {
  std::vector<Shape> Shapes(const MatrixSizes& s) const {
    return {{s.columns, s.right_columns}};
  }
  template <class T>
  absl::Status Run(const MatricesOf<T>& in, MatricesOf<T>& out) const {
    if (in[0].size() == 0 || in[1].size() == 0) return absl::OkStatus();
    const Eigen::PartialPivLU<MatrixOf<T>> lu(Adjoint(in[0]));
    if (IsSingular<T>(lu)) return NotInvertible();
    out[0] = lu.solve(in[1]);
    return absl::OkStatus();
  }
};

struct TriangularSolveOp : MatrixOp {
  static constexpr bool kBroadcasts = true;
  std::vector<Shape> Shapes(const MatrixSizes& s) const {
    return {{s.columns, s.right_columns}};
  }
  template <class T>
  absl::Status Run(const MatricesOf<T>& in, MatricesOf<T>& out) const {
    if (in[0].size() == 0 || in[1].size() == 0) return absl::OkStatus();
    const MatrixOf<T> a = Adjoint(in[0]);
    if (lower != adjoint) {
      out[0] = a.template triangularView<Eigen::Lower>().solve(in[1]);
    } else {
      out[0] = a.template triangularView<Eigen::Upper>().solve(in[1]);
    }
    return absl::OkStatus();
  }
};

// LogMatrixDeterminant and MatrixDeterminant.
template <bool kIsLog>
struct DeterminantOp : MatrixOp {
  std::vector<Shape> Shapes(const MatrixSizes&) const {
    return std::vector<Shape>(kIsLog ? 2 : 1);
  }
  template <class T>
  absl::Status Run(const MatricesOf<T>& in, MatricesOf<T>& out) const {
    T sign = 1;  // or, of complex numbers, the direction
    double log = 0;
    if (in[0].size() > 0) {
      const Eigen::PartialPivLU<MatrixOf<T>> lu(in[0]);
      sign = static_cast<double>(lu.permutationP().determinant());
      for (int64_t i = 0; i < in[0].rows(); ++i) {
        const T x = lu.matrixLU()(i, i);
        const double size = std::abs(x);
        if (size == 0) {
          sign = 0;
        } else if constexpr (std::is_arithmetic_v<T>) {
          sign = x < 0 ? -sign : sign;  // also of an infinite x
        } else {
          sign *= x / size;
        }
        log += std::log(size);
      }
    }
    if (kIsLog) {
      out[0](0, 0) = sign;
      out[1](0, 0) = log;
    } else {
      out[0](0, 0) = sign == T(0) ? T(0) : sign * std::exp(log);
    }
    return absl::OkStatus();
  }
};

struct QrOp : MatrixOp {
  static constexpr bool kIsSquare = false;
  std::vector<Shape> Shapes(const MatrixSizes& s) const {
    const int64_t inner = full ? s.rows : std::min(s.rows, s.columns);
    return {{s.rows, inner}, {inner, s.columns}};
  }
  template <class T>
  absl::Status Run(const MatricesOf<T>& in, MatricesOf<T>& out) const {
    if (in[0].size() == 0) {
      out[0].setIdentity();
      return absl::OkStatus();
    }
    const Eigen::HouseholderQR<MatrixOf<T>> qr(in[0]);
    const int64_t inner = out[1].rows();
    out[0] = qr.householderQ() * MatrixOf<T>::Identity(in[0].rows(), inner);
    out[1] =
        qr.matrixQR().topRows(inner).template triangularView<Eigen::Upper>();
    return absl::OkStatus();
  }
};

struct SelfAdjointEigOp : MatrixOp {
  std::vector<Shape> Shapes(const MatrixSizes& s) const {
    if (compute_vectors) return {{s.rows}, {s.rows, s.rows}};
    return {{s.rows}, {0}};
  }
  template <class T>
  absl::Status Run(const MatricesOf<T>& in, MatricesOf<T>& out) const {
    if (in[0].size() == 0) return absl::OkStatus();
    const Eigen::SelfAdjointEigenSolver<MatrixOf<T>> solver(
        in[0],
        compute_vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
    if (solver.info() != Eigen::Success) {
      return NotDecomposed("Self-adjoint eigen decomposition");
    }
    out[0] = solver.eigenvalues().template cast<T>();
    if (compute_vectors) out[1] = solver.eigenvectors();
    return absl::OkStatus();
  }
};

// TensorFlow decomposes complex matrices in this way on the CPU only.
struct SvdOp : MatrixOp {
  static constexpr bool kIsSquare = false, kHasComplex = false;
  std::vector<Shape> Shapes(const MatrixSizes& s) const {
    const int64_t p = std::min(s.rows, s.columns);
    if (!compute_vectors) return {{p}, {0}, {0}};
    return {
        {p}, {s.rows, full ? s.rows : p}, {s.columns, full ? s.columns : p}};
  }
  template <class T>
  absl::Status Run(const MatricesOf<T>& in, MatricesOf<T>& out) const {
    if (in[0].size() == 0) {
      if (compute_vectors) {
        out[1].setIdentity();
        out[2].setIdentity();
      }
      return absl::OkStatus();
    }
    if (!in[0].allFinite()) {  // As TensorFlow's kernel for the CPU does.
      for (MatrixOf<T>& x : out) {
        x.setConstant(std::numeric_limits<T>::quiet_NaN());
      }
      return absl::OkStatus();
    }
    unsigned options = 0;
    if (compute_vectors) {
      options = full ? Eigen::ComputeFullU | Eigen::ComputeFullV
                     : Eigen::ComputeThinU | Eigen::ComputeThinV;
    }
    const Eigen::BDCSVD<MatrixOf<T>> svd(in[0], options);
    out[0] = svd.singularValues();
    if (compute_vectors) {
      out[1] = svd.matrixU();
      out[2] = svd.matrixV();
    }
    return absl::OkStatus();
  }
};

// Lu: row i of L U is row p[i] of the input.
struct LuOp : MatrixOp {
  std::vector<Shape> Shapes(const MatrixSizes& s) const {
    return {{s.rows, s.rows}, {s.rows}};
  }
  template <class T>
  absl::Status Run(const MatricesOf<T>& in, MatricesOf<T>& out) const {
    if (in[0].size() == 0) return absl::OkStatus();
    const Eigen::PartialPivLU<MatrixOf<T>> lu(in[0]);
    if (IsSingular<T>(lu)) return NotInvertible("Input");
    out[0] = lu.matrixLU();
    for (int64_t i = 0; i < in[0].rows(); ++i) {
      out[1](lu.permutationP().indices()[i], 0) = static_cast<double>(i);
    }
    return absl::OkStatus();
  }
};

}  // namespace op_kernels_internal

inline void LinalgOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  constexpr uint64_t kRealTypes =
      kernel::SetOf(DataType::kFloat, DataType::kDouble);
  constexpr uint64_t kTypes = kRealTypes | kComplexTypes;
  registrar.Add<MatrixKernel<CholeskyOp>>(KernelDef("Cholesky"), "T", kTypes);
  registrar.Add<MatrixKernel<InverseOp>>(KernelDef("MatrixInverse"), "T",
                                         kTypes);
  registrar.Add<MatrixKernel<SolveOp>>(KernelDef("MatrixSolve"), "T", kTypes);
  registrar.Add<MatrixKernel<TriangularSolveOp>>(
      KernelDef("MatrixTriangularSolve"), "T", kTypes);
  registrar.Add<MatrixKernel<DeterminantOp<false>>>(
      KernelDef("MatrixDeterminant"), "T", kTypes);
  registrar.Add<MatrixKernel<DeterminantOp<true>>>(
      KernelDef("LogMatrixDeterminant"), "T", kTypes);
  registrar.Add<MatrixKernel<QrOp>>(KernelDef("Qr"), "T", kTypes);
  registrar.Add<MatrixKernel<SelfAdjointEigOp>>(KernelDef("SelfAdjointEigV2"),
                                                "T", kTypes);
  registrar.Add<MatrixKernel<SvdOp>>(KernelDef("Svd"), "T", kRealTypes);
  registrar.Add<MatrixKernel<LuOp>>(
      KernelDef("Lu").TypeConstraint<int32_t, int64_t>("output_idx_type"), "T",
      kTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_LINALG_H_
