// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/simd/code.h"

namespace cpu_sim::CPU_SIM_LEVEL {
namespace {

// ---- Loops that the compiler vectorizes ------------------------------------

template <typename F>
void Each(int64_t size, const float* x, float* y, F f) {
  CPU_SIM_NO_OVERLAP
  for (int64_t i = 0; i < size; ++i) y[i] = f(x[i]);
}

template <typename F>
void Each(int64_t size, const float* a, int64_t a_step, const float* b,
          int64_t b_step, float* y, F f) {
  if (a_step == 0) {
    Each(size, b, y, [f, value = *a](float v) { return f(value, v); });
  } else if (b_step == 0) {
    Each(size, a, y, [f, value = *b](float v) { return f(v, value); });
  } else {
    CPU_SIM_NO_OVERLAP
    for (int64_t i = 0; i < size; ++i) y[i] = f(a[i], b[i]);
  }
}

// ---- Operations ------------------------------------------------------------

void DoUnary(Unary op, int64_t size, const float* x, float* y) {
  const Eigen::Map<const Eigen::Array<float, 1, Eigen::Dynamic>> in(x, size);
  Eigen::Map<Eigen::Array<float, 1, Eigen::Dynamic>> out(y, size);
  switch (op) {
    case Unary::kNeg:
      return Each(size, x, y, [](float v) { return -v; });
    case Unary::kAbs:
      return Each(size, x, y, [](float v) { return std::abs(v); });
    case Unary::kSign:
      return Each(size, x, y, [](float v) {
        return v > 0 ? 1 : v < 0 ? -1 : v;
      });
    case Unary::kReciprocal:
      return Each(size, x, y, [](float v) { return 1 / v; });
    case Unary::kSquare:
      return Each(size, x, y, [](float v) { return v * v; });
    case Unary::kSqrt:
      return Each(size, x, y, [](float v) { return std::sqrt(v); });
    case Unary::kRsqrt:
      return Each(size, x, y, [](float v) { return 1 / std::sqrt(v); });
    case Unary::kFloor:
      return Each(size, x, y, [](float v) { return std::floor(v); });
    case Unary::kExp:
      out = in.exp();
      return;
    case Unary::kExpm1:
      out = in.expm1();
      return;
    case Unary::kLog:
      out = in.log();
      return;
    case Unary::kLog1p:
      out = in.log1p();
      return;
    case Unary::kTanh:
      out = in.tanh();
      return;
    case Unary::kSigmoid:
      out = in.logistic();
      return;
  }
}

void DoBinary(Binary op, int64_t size, const float* a, int64_t a_step,
              const float* b, int64_t b_step, float* y) {
  const auto each = [&](auto f) { Each(size, a, a_step, b, b_step, y, f); };
  switch (op) {
    case Binary::kAdd:
      return each([](float u, float v) { return u + v; });
    case Binary::kSub:
      return each([](float u, float v) { return u - v; });
    case Binary::kMul:
      return each([](float u, float v) { return u * v; });
    case Binary::kDiv:
      return each([](float u, float v) { return u / v; });
    case Binary::kDivNoNan:
      return each([](float u, float v) { return v == 0 ? 0 : u / v; });
    case Binary::kMulNoNan:
      return each([](float u, float v) { return v == 0 ? 0 : u * v; });
    case Binary::kSquaredDifference:
      return each([](float u, float v) { return (u - v) * (u - v); });
    case Binary::kMaximum:
      return each([](float u, float v) { return u >= v || u != u ? u : v; });
    case Binary::kMinimum:
      return each([](float u, float v) { return u <= v || u != u ? u : v; });
    case Binary::kTanhGrad:
      return each([](float u, float v) { return v * (1 - u * u); });
    case Binary::kSigmoidGrad:
      return each([](float u, float v) { return v * u * (1 - u); });
    case Binary::kSqrtGrad:
      return each([](float u, float v) { return v / (2 * u); });
    case Binary::kRsqrtGrad:
      return each([](float u, float v) { return v * (u * u * u) / -2; });
    case Binary::kReciprocalGrad:
      return each([](float u, float v) { return -v * (u * u); });
  }
}

}  // namespace

const ElementwiseCode kElementwise = {&DoUnary, &DoBinary};

}  // namespace cpu_sim::CPU_SIM_LEVEL
