// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <unsupported/Eigen/FFT>

#include "backend/backend.h"
#include "backend/device_views.h"
#include "kernels/parallel.h"

// Fourier transforms by Eigen.
namespace cpu_sim {
namespace {

using tfplug::Operand;

// Transforms rows of n complex numbers.
template <class T>
void TransformRows(bool is_inverse, const Operand& x, const Operand& y) {
  using Complex = std::complex<T>;
  const int64_t n = x.dim(1);
  const int64_t cost = 4 * n * (1 + static_cast<int64_t>(std::log2(n)));
  ForEachPiece(x.dim(0), PieceOf(cost),
               [&](int64_t begin, int64_t end, int64_t) {
                 Eigen::FFT<T> transform;
                 transform.SetFlag(Eigen::FFT<T>::Unscaled);
                 for (int64_t row = begin; row < end; ++row) {
                   const Complex* const from =
                       static_cast<const Complex*>(x.data) + row * n;
                   Complex* const to = static_cast<Complex*>(y.data) + row * n;
                   if (n == 1) {
                     *to = *from;
                   } else if (is_inverse) {
                     transform.inv(to, from, n);
                   } else {
                     transform.fwd(to, from, n);
                   }
                 }
               });
}

}  // namespace

absl::Status Backend::Fourier(Stream& stream, tfplug::Launcher& launcher,
                              bool is_inverse, const Operand& x,
                              const Operand& y) {
  if (x.dim(1) > std::numeric_limits<int>::max()) {  // Eigen's type of sizes
    return tfplug::Backend<Stream>::Fourier(stream, launcher, is_inverse, x, y);
  }
  TFPLUG_ASSIGN_OR_RETURN(const DeviceViews views, ForDevice(stream, {x, y}));
  return stream.LaunchTask([is_inverse, views] {
    if (views[0].type == tfplug::DataType::kFloat) {
      TransformRows<float>(is_inverse, views[0], views[1]);
    } else {
      TransformRows<double>(is_inverse, views[0], views[1]);
    }
  });
}

}  // namespace cpu_sim
