// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_SVD_H_
#define TFPLUG_OP_KERNELS_INTERNAL_SVD_H_

#include <Eigen/Core>
#include <Eigen/Jacobi>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// The singular values of a matrix and, if wanted, its singular vectors, by the
// method of Golub and Reinsch: reflections make the matrix bidiagonal, and QR
// steps with shifts diagonal. Eigen's JacobiSVD takes 20 times as long for 200
// rows, and its BDCSVD, which is as fast, 40 seconds to compile.
class Svd {
 public:
  using Matrix =
      Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  enum Vectors { kNone, kThin, kFull };

  // The elements of `a` must be finite.
  Svd(const Matrix& a, Vectors vectors) : is_wide_(a.rows() < a.cols()) {
    a_ = is_wide_ ? Matrix(a.transpose()) : a;
    const double largest = a_.cwiseAbs().maxCoeff();
    const double scale = largest > 0 ? largest : 1;
    a_ /= scale;
    const int64_t n = a_.cols();
    d_ = tau_left_ = Vector::Zero(n);
    e_ = tau_right_ = Vector::Zero(n);
    MakeBidiagonal();
    if (vectors != kNone) {
      left_ = Matrix::Identity(vectors == kFull ? a_.rows() : n, a_.rows());
      right_ = Matrix::Identity(n, n);
      MakeVectors();
    }
    MakeDiagonal();
    Sort();
    d_ *= scale;
  }

  // False is not known to happen. The results are then not exact.
  bool has_converged() const { return has_converged_; }
  const Eigen::VectorXd& values() const { return d_; }
  // A column is a vector.
  Matrix u() const { return (is_wide_ ? right_ : left_).transpose(); }
  Matrix v() const { return (is_wide_ ? left_ : right_).transpose(); }

 private:
  using Vector = Eigen::VectorXd;
  using Row = Eigen::RowVectorXd;

  // Replaces `x` by v and returns tau and beta so that (1 - tau v v') x =
  // (beta, 0, ...) and v[0] = 1.
  static std::pair<double, double> Reflect(Row& x) {
    const double alpha = x[0], norm = x.norm();
    x[0] = 1;
    if (norm == std::abs(alpha)) {
      x.tail(x.size() - 1).setZero();
      return {0, alpha};
    }
    const double beta = alpha > 0 ? -norm : norm;
    x.tail(x.size() - 1) /= alpha - beta;
    return {(beta - alpha) / beta, beta};
  }
  // Multiplies the rows of the block from (row, column) on by the reflection.
  static void ApplyToRows(const Row& v, double tau, int64_t row, int64_t column,
                          Matrix& m) {
    for (int64_t i = row; i < m.rows(); ++i) {
      auto part = m.row(i).segment(column, v.size());
      part -= tau * part.dot(v) * v;
    }
  }

  // Leaves the vectors of the reflections in a_.
  void MakeBidiagonal() {
    const int64_t m = a_.rows(), n = a_.cols();
    Row v, sum;
    for (int64_t k = 0; k < n; ++k) {
      v = a_.col(k).tail(m - k).transpose();
      std::tie(tau_left_[k], d_[k]) = Reflect(v);
      a_.col(k).tail(m - k) = v.transpose();
      const int64_t rest = n - k - 1;
      if (rest == 0) break;
      sum = Row::Zero(rest);
      for (int64_t i = k; i < m; ++i) sum += v[i - k] * a_.row(i).tail(rest);
      for (int64_t i = k; i < m; ++i) {
        a_.row(i).tail(rest) -= tau_left_[k] * v[i - k] * sum;
      }
      v = a_.row(k).tail(rest);
      std::tie(tau_right_[k], e_[k]) = Reflect(v);
      a_.row(k).tail(rest) = v;
      ApplyToRows(v, tau_right_[k], k + 1, k + 1, a_);
    }
  }
  void MakeVectors() {
    const int64_t m = a_.rows(), n = a_.cols();
    for (int64_t k = n; --k >= 0;) {
      ApplyToRows(a_.col(k).tail(m - k).transpose(), tau_left_[k], k, k, left_);
      if (k + 1 == n) continue;
      ApplyToRows(a_.row(k).tail(n - k - 1), tau_right_[k], k + 1, k + 1,
                  right_);
    }
  }

  // Returns the rotation that makes (y, z) (r, 0), and replaces y by r.
  static Eigen::JacobiRotation<double> Rotation(double& y, double z) {
    const double r = std::hypot(y, z);
    if (r == 0) return {1, 0};
    const double c = y / r, s = z / r;
    y = r;
    return {c, s};
  }
  static void Rotate(Matrix& vectors, int64_t i, int64_t k,
                     const Eigen::JacobiRotation<double>& rotation) {
    if (vectors.size() > 0) vectors.applyOnTheLeft(i, k, rotation);
  }

  void MakeDiagonal() {
    const double small = std::numeric_limits<double>::epsilon() *
                         (d_.cwiseAbs() + e_.cwiseAbs()).maxCoeff();
    int64_t steps = 60 * d_.size();
    for (int64_t high = d_.size(); --high >= 0;) {
      for (;;) {
        int64_t low = high;
        while (low > 0 && std::abs(e_[low - 1]) > small) --low;
        if (low > 0) e_[low - 1] = 0;
        if (low == high) break;
        if (--steps < 0) {
          has_converged_ = false;
          return;
        }
        int64_t zero = low;
        while (zero <= high && std::abs(d_[zero]) > small) ++zero;
        if (zero > high) {
          Step(low, high);
        } else if (zero < high) {
          ClearRow(zero, high);
        } else {
          ClearColumn(low, high);
        }
      }
    }
    for (int64_t i = 0; i < d_.size(); ++i) {
      if (d_[i] >= 0) continue;
      d_[i] = -d_[i];
      if (right_.size() > 0) right_.row(i) *= -1;
    }
  }
  // Makes e[k] zero, where d[k] is.
  void ClearRow(int64_t k, int64_t high) {
    double f = std::exchange(e_[k], 0);
    d_[k] = 0;
    for (int64_t j = k + 1; j <= high; ++j) {
      const auto rotation = Rotation(d_[j], f);
      Rotate(left_, j, k, rotation);
      f = -rotation.s() * e_[j];
      e_[j] *= rotation.c();
    }
  }
  // Makes e[high - 1] zero, where d[high] is.
  void ClearColumn(int64_t low, int64_t high) {
    double f = std::exchange(e_[high - 1], 0);
    d_[high] = 0;
    for (int64_t j = high - 1; j >= low; --j) {
      const auto rotation = Rotation(d_[j], f);
      Rotate(right_, j, high, rotation);
      if (j == low) break;
      f = -rotation.s() * e_[j - 1];
      e_[j - 1] *= rotation.c();
    }
  }
  // A QR step with Wilkinson's shift.
  void Step(int64_t low, int64_t high) {
    const double before = high - 1 > low ? e_[high - 2] : 0;
    const double a = d_[high - 1] * d_[high - 1] + before * before;
    const double b = d_[high - 1] * e_[high - 1];
    const double c = d_[high] * d_[high] + e_[high - 1] * e_[high - 1];
    const double half = (a - c) / 2;
    const double root = std::hypot(half, b);
    const double sum = half < 0 ? half - root : half + root;
    const double shift = sum == 0 ? c : c - b / sum * b;
    double y = d_[low] * d_[low] - shift, z = d_[low] * e_[low];
    for (int64_t k = low; k < high; ++k) {
      auto rotation = Rotation(y, z);
      if (k > low) e_[k - 1] = y;
      Rotate(right_, k, k + 1, rotation);
      y = rotation.c() * d_[k] + rotation.s() * e_[k];
      e_[k] = rotation.c() * e_[k] - rotation.s() * d_[k];
      z = rotation.s() * d_[k + 1];
      d_[k + 1] *= rotation.c();

      rotation = Rotation(y, z);
      d_[k] = y;
      Rotate(left_, k, k + 1, rotation);
      y = rotation.c() * e_[k] + rotation.s() * d_[k + 1];
      d_[k + 1] = rotation.c() * d_[k + 1] - rotation.s() * e_[k];
      e_[k] = y;
      if (k + 1 == high) break;
      z = rotation.s() * e_[k + 1];
      e_[k + 1] *= rotation.c();
    }
  }

  void Sort() {
    for (int64_t i = 0; i < d_.size(); ++i) {
      int64_t largest = 0;
      d_.tail(d_.size() - i).maxCoeff(&largest);
      if (largest == 0) continue;
      std::swap(d_[i], d_[i + largest]);
      if (left_.size() == 0) continue;
      left_.row(i).swap(left_.row(i + largest));
      right_.row(i).swap(right_.row(i + largest));
    }
  }

  bool is_wide_, has_converged_ = true;
  Matrix a_;  // not wide
  Vector d_, e_, tau_left_, tau_right_;
  Matrix left_, right_;  // a row is a vector
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_SVD_H_
