// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_TESTS_LEVELS_H_
#define CPU_SIM_TESTS_LEVELS_H_

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/simd.h"

// Helpers for tests that run at each SIMD level that this machine supports.
namespace cpu_sim {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

// Returns random values between -1 and 1.
inline Floats Draw(int64_t size) {
  static std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Floats values(static_cast<size_t>(size));
  for (float& value : values) value = uniform(random);
  return values;
}

// The memory for a result, filled with 77, and a guard behind it.
struct Output {
  explicit Output(int64_t size) : values(static_cast<size_t>(size) + 16, 77) {}
  explicit Output(const Doubles& want)
      : Output(static_cast<int64_t>(want.size())) {}
  float* data() { return values.data(); }

  void Check(const Doubles& want, double tolerance = 1e-5) const {
    REQUIRE(values.size() == want.size() + 16);
    double scale = 1;
    for (const double w : want) scale = std::max(scale, std::abs(w));
    double worst = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      worst = std::max(worst, std::abs(values[i] - want[i]));
    }
    CHECK(worst <= scale * tolerance);
    for (size_t i = want.size(); i < values.size(); ++i) {
      CHECK(values[i] == 77);
    }
  }

  Floats values;
};

template <typename Test>
void ForEachLevel(Test test) {
  std::vector<std::string> seen;
  for (const char* limit : {"baseline", "v3", "v4"}) {
    const SimdCode& code = SimdUpTo(limit);
    if (std::count(seen.begin(), seen.end(), code.level) > 0) continue;
    seen.push_back(code.level);
    CAPTURE(code.level);
    test(code);
  }
}

}  // namespace cpu_sim

#endif  // CPU_SIM_TESTS_LEVELS_H_
