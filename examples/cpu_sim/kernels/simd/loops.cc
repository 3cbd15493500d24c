// SPDX-License-Identifier: Apache-2.0

// The loops of tfplug's engine for the host, in which functions of floats are
// those of Eigen. Their namespace has another name in each level, as Eigen has:
// see code.h.
#include "kernels/simd/code.h"

#define CPU_SIM_PASTE_(a, b) a##b
#define CPU_SIM_PASTE(a, b) CPU_SIM_PASTE_(a, b)
#define tfplug CPU_SIM_PASTE(cpu_sim_tfplug_, CPU_SIM_LEVEL)
#include <tfplug/backend/internal/host_code.h>

#include <iterator>
#include <limits>
#include <type_traits>
#include <unsupported/Eigen/SpecialFunctions>

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace cpu_sim::CPU_SIM_LEVEL {
namespace {

using tfplug::DataType;
using tfplug::HostRows;
using tfplug::Opcode;

// ---- Functions --------------------------------------------------------------

// Returns whether a positive number is denormal: Eigen's logarithm takes it for
// the smallest normal one.
template <typename T>
bool HasDenormal(int64_t n, const T* x) {
  unsigned found = 0;
  for (int64_t i = 0; i < n; ++i) {
    found |= static_cast<unsigned>(x[i] > 0) &
             static_cast<unsigned>(x[i] < std::numeric_limits<T>::min());
  }
  return found != 0;
}

// Returns whether the exponential of a number is near the largest float, which
// Eigen's loop takes for infinite.
template <typename T>
bool HasLargeExponent(int64_t n, const T* x) {
  if (!std::is_same_v<T, float>) return false;
  unsigned found = 0;
  for (int64_t i = 0; i < n; ++i) {
    found |= static_cast<unsigned>(x[i] > T(88)) &
             static_cast<unsigned>(x[i] < T(89));
  }
  return found != 0;
}

// Returns whether Eigen has a loop for the opcode and these numbers.
template <typename T>
bool ComputeFunction(Opcode opcode, int64_t n, T* y, const T* x) {
  const Eigen::Map<const Eigen::Array<T, 1, Eigen::Dynamic>> in(x, n);
  Eigen::Map<Eigen::Array<T, 1, Eigen::Dynamic>> out(y, n);
  switch (opcode) {
    case Opcode::kExp:
      if (HasLargeExponent(n, x)) return false;
      out = in.exp();
      return true;
    case Opcode::kExpm1:
      if (HasLargeExponent(n, x)) return false;
      out = in.expm1();
      return true;
    case Opcode::kLog:
      if (HasDenormal(n, x)) return false;
      out = in.log();
      return true;
    case Opcode::kLog1p:
      out = in.log1p();
      return true;
    case Opcode::kTanh:
      out = in.tanh();
      return true;
    case Opcode::kSin:
      out = in.sin();
      return true;
    case Opcode::kCos:
      out = in.cos();
      return true;
    case Opcode::kErf:
      out = in.erf();
      return true;
    default:
      return false;
  }
}

// erfc(x) = t exp(-z^2 + P(t)) for z = |x| and t = 2 / (2 + z), where P is a
// sum of Chebyshev polynomials (W. H. Press et al., "Numerical Recipes", 3rd
// edition, 6.2.2); with these terms, to 1e-8. In double, in which z^2 is exact.
void Erfc(int64_t n, float* y, const float* x) {
  constexpr double kTerms[] = {
      -1.3026537197817094,   6.4196979235649026e-1, 1.9476473204185836e-2,
      -9.561514786808631e-3, -9.46595344482036e-4,  3.66839497852761e-4,
      4.2523324806907e-5,    -2.0278578112534e-5,   -1.624290004647e-6,
      1.303655835580e-6,     1.5626441722e-8,       -8.5238095915e-8,
      6.529054439e-9,        5.059343495e-9,        -9.91364156e-10};
  constexpr int64_t kPiece = 64;
  using Piece = Eigen::Array<double, kPiece, 1>;
  Piece in = Piece::Zero();
  for (int64_t i = 0; i < n; i += kPiece) {
    const int64_t some = std::min(kPiece, n - i);
    for (int64_t k = 0; k < some; ++k) in[k] = x[i + k];
    const Piece z = in.abs();
    const Piece t = 2 / (2 + z);
    const Piece u = 4 * t - 2;
    Piece d = Piece::Zero(), last = Piece::Zero();
    for (int k = static_cast<int>(std::size(kTerms)) - 1; k > 0; --k) {
      const Piece next = u * d - last + kTerms[k];
      last = d;
      d = next;
    }
    const Piece value = t * (0.5 * (kTerms[0] + u * d) - last - z * z).exp();
    const Piece result = (in < 0).select(2 - value, value);
    for (int64_t k = 0; k < some; ++k) {
      y[i + k] = static_cast<float>(in[k] == in[k] ? result[k] : in[k]);
    }
  }
}

// ---- Half -------------------------------------------------------------------

#ifdef __F16C__
constexpr int kHalf = static_cast<int>(DataType::kHalf);
constexpr int64_t kHalves = 8;  // in a vector

void Load(int type, int64_t rows, int64_t n, const HostRows& x, void* y) {
  if (type != kHalf || x.stride != 1) {
    return tfplug::internal::HostLoad(type, rows, n, x, y);
  }
  for (int64_t r = 0; r < rows; ++r) {
    const uint16_t* from =
        static_cast<const uint16_t*>(x.data) + r * x.row_stride;
    float* to = static_cast<float*>(y) + r * n;
    int64_t i = 0;
    for (; i + kHalves <= n; i += kHalves) {
      const auto halves =
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
      _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
    }
    for (; i < n; ++i) to[i] = _cvtsh_ss(from[i]);
  }
}

void Store(int from, int type, int64_t rows, int64_t n, const void* x,
           const HostRows& y) {
  if (from != static_cast<int>(DataType::kFloat) || type != kHalf ||
      y.stride != 1) {
    return tfplug::internal::HostStore(from, type, rows, n, x, y);
  }
  for (int64_t r = 0; r < rows; ++r) {
    const float* values = static_cast<const float*>(x) + r * n;
    uint16_t* to = static_cast<uint16_t*>(y.data) + r * y.row_stride;
    int64_t i = 0;
    for (; i + kHalves <= n; i += kHalves) {
      _mm_storeu_si128(
          reinterpret_cast<__m128i*>(to + i),
          _mm256_cvtps_ph(_mm256_loadu_ps(values + i),
                          _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
    for (; i < n; ++i) to[i] = _cvtss_sh(values[i], _MM_FROUND_TO_NEAREST_INT);
  }
}

// Rounds floats to half.
bool Round(int64_t n, float* y, const float* x) {
  constexpr int64_t kPiece = 512;
  uint16_t halves[kPiece];
  for (int64_t i = 0; i < n; i += kPiece) {
    const int64_t some = std::min(kPiece, n - i);
    const HostRows rows = {halves, some, 1};
    Store(static_cast<int>(DataType::kFloat), kHalf, 1, some, x + i, rows);
    Load(kHalf, 1, some, rows, y + i);
  }
  return true;
}
#else
bool Round(int64_t, float*, const float*) { return false; }
constexpr auto* const Load = &tfplug::internal::HostLoad;
constexpr auto* const Store = &tfplug::internal::HostStore;
#endif

void Compute(int opcode, int type, int from, int64_t n, void* y, const void* a,
             const void* b, const void* c) {
  if (type == static_cast<int>(DataType::kFloat) &&
      opcode == static_cast<int>(Opcode::kErfc)) {
    return Erfc(n, static_cast<float*>(y), static_cast<const float*>(a));
  }
  if (type == static_cast<int>(DataType::kFloat) &&
      ComputeFunction(static_cast<Opcode>(opcode), n, static_cast<float*>(y),
                      static_cast<const float*>(a))) {
    return;
  }
  if (opcode == static_cast<int>(Opcode::kCast) &&
      type == static_cast<int>(DataType::kHalf) &&
      from == static_cast<int>(DataType::kFloat) &&
      Round(n, static_cast<float*>(y), static_cast<const float*>(a))) {
    return;
  }
  tfplug::internal::HostCompute(opcode, type, from, n, y, a, b, c);
}

constexpr tfplug::HostLoops kLoops = {
    &Compute,
    &tfplug::internal::HostComputeRows,
    &tfplug::internal::HostCompare,
    tfplug::internal::kHostChain,
    Load,
    Store,
    &tfplug::internal::HostCopy,
    &tfplug::internal::HostSelect,
    &tfplug::internal::HostCombineRows,
    &tfplug::internal::HostCombineEach,
};

}  // namespace

const void* const kHostLoops = &kLoops;

}  // namespace cpu_sim::CPU_SIM_LEVEL
