// SPDX-License-Identifier: Apache-2.0
#include <tfplug/host/internal/code.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/row_code.h"
#include "levels.h"

// Compares the loops of Map and Reduce of each level with those that tfplug
// compiles for any processor.
namespace cpu_sim::loops_test {
namespace {

using tfplug::DataType;
using tfplug::HostLoops;
using tfplug::HostRows;
using tfplug::Opcode;
using tfplug::ReduceKind;

constexpr int kFloat = static_cast<int>(DataType::kFloat);
constexpr int kHalf = static_cast<int>(DataType::kHalf);
const HostLoops& kGeneric = tfplug::host_internal::kGenericHostLoops;

const HostLoops& LoopsOf(const SimdCode& code) {
  return *static_cast<const HostLoops*>(code.loops);
}

// Returns random values with magnitudes between 0.1 and 1.
Floats DrawFarFromZero(int64_t size, bool positive) {
  Floats values = Draw(size);
  for (float& v : values) {
    v = std::copysign(0.1f + 0.9f * std::abs(v), positive ? 1.0f : v);
  }
  return values;
}

bool IsFunctionOfFloats(Opcode opcode) {
  const tfplug::ir::OpcodeInfo info = tfplug::ir::InfoOf(opcode);
  return opcode != Opcode::kConstant && opcode != Opcode::kInput &&
         opcode != Opcode::kElement && opcode != Opcode::kCast &&
         opcode != Opcode::kBitcast && opcode != Opcode::kSelect &&
         !info.gives_bool && tfplug::ir::Allows(info.types, DataType::kFloat);
}

TEST_CASE("functions of floats handle every element, also in place") {
  int functions = 0;
  for (int opcode = 0; opcode < tfplug::kOpcodeCount; ++opcode) {
    if (!IsFunctionOfFloats(static_cast<Opcode>(opcode))) continue;
    ++functions;
    CAPTURE(tfplug::ir::InfoOf(static_cast<Opcode>(opcode)).name);
    for (const int64_t size : {1, 5, 16, 37, 1000}) {
      const Floats a = DrawFarFromZero(size, /*positive=*/true);
      const Floats b = DrawFarFromZero(size, /*positive=*/false);
      Floats want(a.size());
      kGeneric.compute(opcode, kFloat, kFloat, size, want.data(), a.data(),
                       b.data(), nullptr);
      for (float& w : want) w = std::isnan(w) ? 0 : w;  // acosh below 1
      ForEachLevel([&](const SimdCode& code) {
        Output y(size), in_place(size);
        std::copy(a.begin(), a.end(), in_place.data());
        for (Output* to : {&y, &in_place}) {
          LoopsOf(code).compute(opcode, kFloat, kFloat, size, to->data(),
                                to == &y ? a.data() : to->data(), b.data(),
                                nullptr);
          for (int64_t i = 0; i < size; ++i) {
            if (std::isnan(to->values[i])) to->values[i] = 0;
          }
          to->Check(Doubles(want.begin(), want.end()), 1e-6);
        }
      });
    }
  }
  CHECK(functions > 30);
}

TEST_CASE("the result of an element does not depend on its position") {
  // Near the largest exponential and the smallest logarithm as well.
  Floats a = DrawFarFromZero(37, /*positive=*/true);
  a[3] = 88.5f;
  a[20] = 1e-40f;
  const auto size = static_cast<int64_t>(a.size());
  for (int opcode = 0; opcode < tfplug::kOpcodeCount; ++opcode) {
    if (!IsFunctionOfFloats(static_cast<Opcode>(opcode))) continue;
    CAPTURE(tfplug::ir::InfoOf(static_cast<Opcode>(opcode)).name);
    ForEachLevel([&](const SimdCode& code) {
      Floats all(a.size());
      LoopsOf(code).compute(opcode, kFloat, kFloat, size, all.data(), a.data(),
                            a.data(), nullptr);
      for (size_t i = 0; i < a.size(); ++i) {
        float one;
        LoopsOf(code).compute(opcode, kFloat, kFloat, 1, &one, &a[i], &a[i],
                              nullptr);
        CAPTURE(i);
        CHECK((std::isnan(one) ? std::isnan(all[i]) : one == all[i]));
      }
    });
  }
}

TEST_CASE("NaN, infinities and zeros have the same results in all levels") {
  const float nan = std::nanf(""), inf = HUGE_VALF;
  const Floats a = {nan, 1, nan, inf, 0, -0.0f, -inf, 200},
               b = {1, nan, 0, 0, 0, 5, inf, 0};
  const auto size = static_cast<int64_t>(a.size());
  for (int opcode = 0; opcode < tfplug::kOpcodeCount; ++opcode) {
    if (!IsFunctionOfFloats(static_cast<Opcode>(opcode))) continue;
    CAPTURE(tfplug::ir::InfoOf(static_cast<Opcode>(opcode)).name);
    Floats want(a.size());
    kGeneric.compute(opcode, kFloat, kFloat, size, want.data(), a.data(),
                     b.data(), nullptr);
    ForEachLevel([&](const SimdCode& code) {
      Floats y(a.size());
      LoopsOf(code).compute(opcode, kFloat, kFloat, size, y.data(), a.data(),
                            b.data(), nullptr);
      for (size_t i = 0; i < y.size(); ++i) {
        CAPTURE(a[i]);
        CHECK(std::isnan(y[i]) == std::isnan(want[i]));
        CHECK(std::isinf(y[i]) == std::isinf(want[i]));
        if (std::isinf(a[i])) CHECK((y[i] == 0) == (want[i] == 0));
      }
    });
  }
}

TEST_CASE("the probability of an infinitely small logit is 0") {
  for (const int64_t size : {2, 5, 16, 37}) {
    Floats logits(static_cast<size_t>(size), -HUGE_VALF);
    logits[1] = -1;
    ForEachLevel([&](const SimdCode& code) {
      Floats y(logits.size());
      RowsOf(code).softmax(logits.data(), y.data(), 1, size);
      CHECK(std::count(y.begin(), y.end(), 0.0f) == size - 1);
      CHECK(y[1] == 1);
    });
  }
}

TEST_CASE("comparisons select, convert and multiply") {
  const Floats a = {1, 2, 3, 4, std::nanf("")}, b = {2, 2, 2, 2, 2},
               u = {10, 20, 30, 40, HUGE_VALF}, v = {-1, -2, -3, -4, -5};
  const auto run = [&](const SimdCode& code, Opcode opcode, const float* u,
                       const float* v) {
    Floats y(5);
    LoopsOf(code).compare(static_cast<int>(opcode), kFloat, HostLoops::kNone, 5,
                          y.data(), a.data(), b.data(), u, v);
    return y;
  };
  ForEachLevel([&](const SimdCode& code) {
    CHECK(run(code, Opcode::kLt, u.data(), v.data()) ==
          Floats{10, -2, -3, -4, -5});
    CHECK(run(code, Opcode::kLe, nullptr, nullptr) == Floats{1, 1, 0, 0, 0});
    CHECK(run(code, Opcode::kEq, nullptr, nullptr) == Floats{0, 1, 0, 0, 0});
    CHECK(run(code, Opcode::kNe, nullptr, nullptr) == Floats{1, 0, 1, 1, 1});
    const Floats scaled = run(code, Opcode::kLt, u.data(), nullptr);
    CHECK((scaled[0] == 10 && scaled[3] == 0));
    CHECK(std::isnan(scaled[4]));  // infinity times 0
  });
}

TEST_CASE("arithmetic and comparisons with a value or a row") {
  constexpr Opcode kArithmetic[] = {Opcode::kAdd, Opcode::kSub, Opcode::kMul,
                                    Opcode::kDiv, Opcode::kMax, Opcode::kMin};
  const int64_t rows = 3, n = 21;
  const Floats a = Draw(rows * n), b = Draw(rows * n);
  for (const Opcode opcode : kArithmetic) {
    const int number = static_cast<int>(opcode);
    CAPTURE(number);
    for (int layout = 0; layout < 8; ++layout) {
      const bool swapped = (layout & 4) != 0;
      const int64_t row_stride = (layout & 2) != 0 ? n : 0, stride = layout & 1;
      Floats spread(a.size()), want(a.size());
      for (int64_t i = 0; i < rows * n; ++i) {
        spread[i] = b[i / n * row_stride + i % n * stride];
      }
      kGeneric.compute(number, kFloat, kFloat, rows * n, want.data(),
                       swapped ? spread.data() : a.data(),
                       swapped ? a.data() : spread.data(), nullptr);
      ForEachLevel([&](const SimdCode& code) {
        Floats y(a.size()), values = b;
        LoopsOf(code).compute_rows(number, kFloat, swapped, rows, n, y.data(),
                                   a.data(),
                                   {values.data(), row_stride, stride});
        CHECK(y == want);
      });
    }
  }
  ForEachLevel([&](const SimdCode& code) {
    Floats y(a.size());
    const float zero = 0;
    const auto count = [&](HostLoops::Single single) {
      LoopsOf(code).compare(
          static_cast<int>(Opcode::kLt), kFloat, single, rows * n, y.data(),
          single == HostLoops::kA ? &zero : a.data(),
          single == HostLoops::kB ? &zero : a.data(), nullptr, nullptr);
      return std::count(y.begin(), y.end(), 1.0f);
    };
    CHECK(count(HostLoops::kNone) == 0);
    CHECK(count(HostLoops::kA) > 0);
    CHECK(count(HostLoops::kA) + count(HostLoops::kB) == rows * n);
  });
}

TEST_CASE("erf of small numbers, also denormal ones") {
  const Floats x = {8.816207631e-39f, -8.816207631e-39f, 1e-42f,  3e-37f,
                    1e-20f,           9.99e-5f,          1.01e-4f};
  ForEachLevel([&](const SimdCode& code) {
    Floats y(x.size());
    LoopsOf(code).compute(static_cast<int>(Opcode::kErf), kFloat, kFloat,
                          static_cast<int64_t>(x.size()), y.data(), x.data(),
                          nullptr, nullptr);
    for (size_t i = 0; i < x.size(); ++i) {
      CAPTURE(x[i]);
      const float want = std::erf(x[i]);
      CHECK(y[i] >= std::nextafter(want, -1.0f));
      CHECK(y[i] <= std::nextafter(want, 1.0f));
    }
  });
}

TEST_CASE("all halves are converted") {
  std::vector<uint16_t> halves(1 << 16);
  for (size_t i = 0; i < halves.size(); ++i) {
    halves[i] = static_cast<uint16_t>(i);
  }
  const auto size = static_cast<int64_t>(halves.size());
  Floats want(halves.size());
  kGeneric.load(kHalf, 1, size, {halves.data(), size, 1}, want.data());
  ForEachLevel([&](const SimdCode& code) {
    Floats floats(halves.size());
    LoopsOf(code).load(kHalf, 1, size, {halves.data(), size, 1}, floats.data());
    std::vector<uint16_t> stored(halves.size());
    LoopsOf(code).store(kFloat, kHalf, 1, size, floats.data(),
                        {stored.data(), size, 1});
    int64_t differ = 0;
    for (size_t i = 0; i < halves.size(); ++i) {
      if (std::isnan(want[i])) {
        differ += std::isnan(floats[i]) ? 0 : 1;
      } else {
        differ += floats[i] == want[i] && stored[i] == halves[i] ? 0 : 1;
      }
    }
    CHECK(differ == 0);
  });
}

TEST_CASE("sums over many elements keep their precision") {
  // Sequential summation in float has an error of 1e-2.
  constexpr int kSum = static_cast<int>(ReduceKind::kSum);
  const int64_t rows = 200000, depth = 3;
  const Floats x(static_cast<size_t>(rows * depth), 0.1f);
  const double want = static_cast<double>(0.1f);
  ForEachLevel([&](const SimdCode& code) {
    Doubles by_column(depth), by_row(1);
    LoopsOf(code).combine_rows(kSum, kFloat, rows, depth, x.data(), depth,
                               by_column.data());
    LoopsOf(code).combine_each(kSum, kFloat, 1, rows * depth, x.data(), 0,
                               by_row.data());
    for (const double sum : by_column) {
      CHECK(std::abs(sum / (rows * want) - 1) < 1e-6);
    }
    CHECK(std::abs(by_row[0] / (rows * depth * want) - 1) < 1e-6);
  });
}

}  // namespace
}  // namespace cpu_sim::loops_test
