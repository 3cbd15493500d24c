// SPDX-License-Identifier: Apache-2.0

// The loops of tfplug's engine for the host, in which functions of floats are
// those of Eigen. Their namespace has another name in each level, as Eigen has:
// see code.h.
#include "kernels/simd/code.h"

#define CPU_SIM_PASTE_(a, b) a##b
#define CPU_SIM_PASTE(a, b) CPU_SIM_PASTE_(a, b)
#define tfplug CPU_SIM_PASTE(cpu_sim_tfplug_, CPU_SIM_LEVEL)
#include <tfplug/host/internal/code.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
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

// A multiple of every vector. Only whole pieces are computed, so that a result
// does not depend on the position of its element: what is left after the last
// vector, Eigen computes with other functions, which round differently.
constexpr int64_t kPiece = 16;
using Piece = Eigen::Array<float, kPiece, 1>;

// Sets y = function(x).
template <typename Function>
void ForEachPiece(int64_t n, float* y, const float* x, Function function) {
  int64_t i = 0;
  for (; i + kPiece <= n; i += kPiece) {
    const Piece in = Eigen::Map<const Piece>(x + i);
    Eigen::Map<Piece>(y + i) = function(in);
  }
  if (i == n) return;
  Piece in = Piece::Ones();
  std::copy(x + i, x + n, in.data());
  const Piece out = function(in);
  std::copy_n(out.data(), n - i, y + i);
}

// Numbers between these two, for which Eigen's function is wrong: it takes the
// exponential of a number close to 88.7 for infinite, and the logarithm of a
// denormal number for that of the smallest normal one.
struct Gap {
  float low, high;

  unsigned Has(float x) const {
    return static_cast<unsigned>(x > low) & static_cast<unsigned>(x < high);
  }
};
constexpr Gap kGapOfExp = {88, 89};
constexpr Gap kGapOfLog = {0, std::numeric_limits<float>::min()};

// Sets y = function(x), or y = scalar(x) for a number in the gap.
template <typename Function, typename Scalar>
void ForEachPiece(int64_t n, float* y, const float* x, Gap gap,
                  Function function, Scalar scalar) {
  unsigned found = 0;
  for (int64_t i = 0; i < n; ++i) found |= gap.Has(x[i]);
  if (found == 0) return ForEachPiece(n, y, x, function);
  ForEachPiece(n, y, x, [&](const Piece& in) {
    Piece out = function(in);
    for (int64_t k = 0; k < kPiece; ++k) {
      if (gap.Has(in[k]) != 0) out[k] = scalar(in[k]);
    }
    return out;
  });
}

// Returns whether there is a function of pieces for the opcode, and computes
// it.
bool ComputeFunction(Opcode opcode, int64_t n, float* y, const float* x) {
  switch (opcode) {
    case Opcode::kExp:
      ForEachPiece(
          n, y, x, kGapOfExp,
          [](const Piece& in) -> Piece {
            Piece out = in.exp();
            ClearTiny(kPiece, out.data());
            return out;
          },
          [](float each) { return std::exp(each); });
      return true;
    case Opcode::kExpm1:
      ForEachPiece(
          n, y, x, kGapOfExp,
          [](const Piece& in) -> Piece { return in.expm1(); },
          [](float each) { return std::expm1(each); });
      return true;
    case Opcode::kLog:
      ForEachPiece(
          n, y, x, kGapOfLog, [](const Piece& in) -> Piece { return in.log(); },
          [](float each) { return std::log(each); });
      return true;
    case Opcode::kLog1p:
      ForEachPiece(n, y, x,
                   [](const Piece& in) -> Piece { return in.log1p(); });
      return true;
    case Opcode::kTanh:
      ForEachPiece(n, y, x, [](const Piece& in) -> Piece { return in.tanh(); });
      return true;
    case Opcode::kSin:
      ForEachPiece(n, y, x, [](const Piece& in) -> Piece { return in.sin(); });
      return true;
    case Opcode::kCos:
      ForEachPiece(n, y, x, [](const Piece& in) -> Piece { return in.cos(); });
      return true;
    case Opcode::kErf:
      // Eigen multiplies by a small number first, where few bits of a denormal
      // number remain.
      ForEachPiece(n, y, x, [](const Piece& in) -> Piece {
        return (in.abs() < 2e-4f).select(in * 1.12837917f, in.erf());
      });
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
  constexpr int64_t kDoubles = 64;
  using Doubles = Eigen::Array<double, kDoubles, 1>;
  Doubles in = Doubles::Zero();
  for (int64_t i = 0; i < n; i += kDoubles) {
    const int64_t some = std::min(kDoubles, n - i);
    for (int64_t k = 0; k < some; ++k) in[k] = x[i + k];
    const Doubles z = in.abs();
    const Doubles t = 2 / (2 + z);
    const Doubles u = 4 * t - 2;
    Doubles d = Doubles::Zero(), last = Doubles::Zero();
    for (int k = static_cast<int>(std::size(kTerms)) - 1; k > 0; --k) {
      const Doubles next = u * d - last + kTerms[k];
      last = d;
      d = next;
    }
    const Doubles value = t * (0.5 * (kTerms[0] + u * d) - last - z * z).exp();
    const Doubles result = (in < 0).select(2 - value, value);
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
    return tfplug::host_internal::HostLoad(type, rows, n, x, y);
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
    return tfplug::host_internal::HostStore(from, type, rows, n, x, y);
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
  constexpr int64_t kMost = 512;
  uint16_t halves[kMost];
  for (int64_t i = 0; i < n; i += kMost) {
    const int64_t some = std::min(kMost, n - i);
    const HostRows rows = {halves, some, 1};
    Store(static_cast<int>(DataType::kFloat), kHalf, 1, some, x + i, rows);
    Load(kHalf, 1, some, rows, y + i);
  }
  return true;
}
#else
bool Round(int64_t, float*, const float*) { return false; }
constexpr auto* const Load = &tfplug::host_internal::HostLoad;
constexpr auto* const Store = &tfplug::host_internal::HostStore;
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
  tfplug::host_internal::HostCompute(opcode, type, from, n, y, a, b, c);
}

constexpr tfplug::HostLoops kLoops = {
    &Compute,
    &tfplug::host_internal::HostComputeRows,
    &tfplug::host_internal::HostCompare,
    tfplug::host_internal::kHostChain,
    Load,
    Store,
    &tfplug::host_internal::HostCopy,
    &tfplug::host_internal::HostSelect,
    &tfplug::host::HostCombineRows,
    &tfplug::host::HostCombineEach,
};

}  // namespace

const void* const kHostLoops = &kLoops;

}  // namespace cpu_sim::CPU_SIM_LEVEL
