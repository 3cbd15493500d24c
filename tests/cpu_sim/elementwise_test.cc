// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "levels.h"

namespace cpu_sim {
namespace {

using UnaryFunction = double (*)(double);
constexpr std::pair<Unary, UnaryFunction> kUnaries[] = {
    {Unary::kNeg, [](double v) { return -v; }},
    {Unary::kAbs, [](double v) { return std::abs(v); }},
    {Unary::kSign, [](double v) { return v > 0 ? 1.0 : -1.0; }},
    {Unary::kReciprocal, [](double v) { return 1 / v; }},
    {Unary::kSquare, [](double v) { return v * v; }},
    {Unary::kSqrt, [](double v) { return std::sqrt(v); }},
    {Unary::kRsqrt, [](double v) { return 1 / std::sqrt(v); }},
    {Unary::kExp, [](double v) { return std::exp(v); }},
    {Unary::kExpm1, [](double v) { return std::expm1(v); }},
    {Unary::kLog, [](double v) { return std::log(v); }},
    {Unary::kLog1p, [](double v) { return std::log1p(v); }},
    {Unary::kFloor, [](double v) { return std::floor(v); }},
    {Unary::kTanh, [](double v) { return std::tanh(v); }},
    {Unary::kSigmoid, [](double v) { return 1 / (1 + std::exp(-v)); }},
};
using BinaryFunction = double (*)(double, double);
constexpr std::pair<Binary, BinaryFunction> kBinaries[] = {
    {Binary::kAdd, [](double a, double b) { return a + b; }},
    {Binary::kSub, [](double a, double b) { return a - b; }},
    {Binary::kMul, [](double a, double b) { return a * b; }},
    {Binary::kDiv, [](double a, double b) { return a / b; }},
    {Binary::kDivNoNan, [](double a, double b) { return b == 0 ? 0 : a / b; }},
    {Binary::kMulNoNan, [](double a, double b) { return a * b; }},
    {Binary::kSquaredDifference,
     [](double a, double b) { return (a - b) * (a - b); }},
    {Binary::kMaximum, [](double a, double b) { return std::max(a, b); }},
    {Binary::kMinimum, [](double a, double b) { return std::min(a, b); }},
    {Binary::kTanhGrad, [](double y, double dy) { return dy * (1 - y * y); }},
    {Binary::kSigmoidGrad,
     [](double y, double dy) { return dy * y * (1 - y); }},
    {Binary::kSqrtGrad, [](double y, double dy) { return dy / (2 * y); }},
    {Binary::kRsqrtGrad,
     [](double y, double dy) { return dy * y * y * y / -2; }},
    {Binary::kReciprocalGrad, [](double y, double dy) { return -dy * y * y; }},
};

// Returns random values with magnitudes between 0.1 and 1, all of them positive
// if `positive`.
Floats DrawFarFromZero(int64_t size, bool positive) {
  Floats values = Draw(size);
  for (float& v : values) {
    v = std::copysign(0.1f + 0.9f * std::abs(v), positive ? 1.0f : v);
  }
  return values;
}

TEST_CASE("elementwise functions handle every element, also in place") {
  ForEachLevel([](const SimdCode& code) {
    for (const int64_t size : {1, 5, 16, 37, 1000}) {
      for (const auto& [op, function] : kUnaries) {
        const int number = static_cast<int>(op);
        CAPTURE(number);
        const bool positive = op == Unary::kSqrt || op == Unary::kRsqrt ||
                              op == Unary::kLog || op == Unary::kLog1p;
        const Floats x = DrawFarFromZero(size, positive);
        Doubles want;
        for (const float v : x) want.push_back(function(v));
        Output y(size), in_place(size);
        code.elementwise.unary(op, size, x.data(), y.data());
        y.Check(want, 1e-6);
        std::copy(x.begin(), x.end(), in_place.data());
        code.elementwise.unary(op, size, in_place.data(), in_place.data());
        in_place.Check(want, 1e-6);
      }
      for (const auto& [op, function] : kBinaries) {
        const int number = static_cast<int>(op);
        CAPTURE(number);
        for (int steps = 1; steps < 4; ++steps) {
          const int64_t a_step = steps & 1, b_step = steps >> 1;
          const Floats a = DrawFarFromZero(a_step ? size : 1, false);
          const Floats b = DrawFarFromZero(b_step ? size : 1, false);
          Doubles want;
          for (int64_t i = 0; i < size; ++i) {
            want.push_back(function(a[i * a_step], b[i * b_step]));
          }
          Output y(size), in_place(size);
          code.elementwise.binary(op, size, a.data(), a_step, b.data(), b_step,
                                  y.data());
          y.Check(want, 1e-6);
          const Floats& other = a_step ? a : b;
          std::copy(other.begin(), other.end(), in_place.data());
          code.elementwise.binary(op, size, a_step ? in_place.data() : a.data(),
                                  a_step, a_step ? b.data() : in_place.data(),
                                  b_step, in_place.data());
          in_place.Check(want, 1e-6);
        }
      }
    }
  });
}

TEST_CASE("NaN propagates, and MulNoNan and DivNoNan ignore it") {
  const float nan = std::nanf(""), inf = HUGE_VALF;
  ForEachLevel([&](const SimdCode& code) {
    const Floats a = {nan, 1, nan, inf, 0, -0.0f}, b = {1, nan, 0, 0, 0, 5};
    Floats y(6);
    const auto run = [&](Binary op) {
      code.elementwise.binary(op, 6, a.data(), 1, b.data(), 1, y.data());
    };
    for (const Binary op : {Binary::kMaximum, Binary::kMinimum}) {
      run(op);
      CHECK((std::isnan(y[0]) && std::isnan(y[1]) && std::isnan(y[2])));
    }
    run(Binary::kMulNoNan);
    CHECK((y[2] == 0 && y[3] == 0 && std::isnan(y[1])));
    run(Binary::kDivNoNan);
    CHECK((y[2] == 0 && y[3] == 0 && y[4] == 0));
    code.elementwise.unary(Unary::kSign, 6, a.data(), y.data());
    CHECK((std::isnan(y[0]) && y[3] == 1 && y[4] == 0 && y[5] == 0));
    code.elementwise.unary(Unary::kSqrt, 6, a.data(), y.data());
    CHECK((std::isnan(y[0]) && y[3] == inf));
  });
}

TEST_CASE("a sum keeps its precision") {
  ForEachLevel([](const SimdCode& code) {
    const Floats x(3000001, 0.1f);
    const double want = 3000001 * static_cast<double>(0.1f);
    CHECK(std::abs(code.sum(3000001, x.data()) / want - 1) < 5e-7);
    CHECK(code.sum(0, x.data()) == 0);
  });
}

}  // namespace
}  // namespace cpu_sim
