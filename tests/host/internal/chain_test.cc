// SPDX-License-Identifier: Apache-2.0
#include "tfplug/host/internal/chain.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tfplug/host/host.h"
#include "tfplug/host/internal/code.h"
#include "tfplug/ir/value.h"

namespace tfplug::chain_test {
namespace {

constexpr DataType kType = DataType::kFloat;
using Floats = std::vector<float>;

int num_chains = 0;

// The generic loops, with and without chains.
HostLoops WithChains(bool has_chains) {
  HostLoops loops = host_internal::kGenericHostLoops;
  loops.chain = nullptr;
  if (has_chains) {
    loops.chain = [](const HostStep* steps, int num_steps, int64_t n, float* y,
                     const float* x) {
      ++num_chains;
      host_internal::HostChain(steps, num_steps, n, y, x);
    };
  }
  return loops;
}

class RandomChains {
 public:
  explicit RandomChains(unsigned seed) : random_(seed) {}

  int Below(int n) { return static_cast<int>(random_() % unsigned(n)); }
  float Real() {
    const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-39f};
    if (Below(12) == 0) return special[Below(6)];
    return std::normal_distribution<float>()(random_);
  }
  Floats Reals(int64_t n) {
    Floats values(static_cast<size_t>(n));
    for (float& value : values) value = Real();
    return values;
  }

  // Returns two values of an expression of random instructions, of which many
  // use the one before.
  std::array<Value, 2> Compute(const std::vector<Value>& inputs) {
    std::vector<Value> all = inputs;
    for (int i = 0; i < 24; ++i) {
      const Value u = Below(4) == 0 ? Pick(all) : all.back();
      const Value v = Pick(all);
      switch (Below(12)) {
        case 0:
          all.push_back(u + v);
          break;
        case 1:
          all.push_back(v - u);
          break;
        case 2:
          all.push_back(u * v);
          break;
        case 3:
          all.push_back(v / u);
          break;
        case 4:
          all.push_back(Max(u, v));
          break;
        case 5:
          all.push_back(Min(v, u));
          break;
        case 6:
          all.push_back(-u);
          break;
        case 7:
          all.push_back(Abs(u));
          break;
        case 8:
          all.push_back(u * Below(5) - 2);
          break;
        case 9:
          all.push_back(Sqrt(u));
          break;
        case 10:
          all.push_back(Select(u < v, u, v));
          break;
        default:
          all.push_back(1 / Max(u, 1));
      }
    }
    return {all.back(), Pick(all)};
  }

 private:
  Value Pick(const std::vector<Value>& all) {
    return all[static_cast<size_t>(Below(static_cast<int>(all.size())))];
  }

  std::mt19937 random_;
};

TEST_CASE("chains have the results of their instructions, bit by bit") {
  num_chains = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomChains random(seed);
    const auto expression = MakeExpression(
        {kType, kType, kType}, {kType, kType}, [&](Value x, Value y, Value z) {
          return random.Compute({x, y, z});
        });
    REQUIRE(expression.ok());
    const int64_t rows = 1 + random.Below(4), n = 1 + random.Below(700);
    const Floats x = random.Reals(rows * n);
    Floats row = random.Reals(n), one = random.Reals(1);
    const bool is_in_place = random.Below(2) == 0;
    Floats results[2][2];
    for (const bool has_chains : {false, true}) {
      Floats in = x;
      Floats* const out = results[has_chains];
      out[0] = out[1] = Floats(x.size());
      float* const first = is_in_place ? in.data() : out[0].data();
      Operand inputs[] = {Operand::Dense(in.data(), kType, {rows, n}),
                          Operand::Dense(row.data(), kType, {1, n}),
                          Operand::Dense(one.data(), kType, {1, 1})};
      for (Operand& input : inputs) {
        for (int d = 0; d < 2; ++d) {
          if (input.dim(d) == 1) input.stride(d) = 0;
          input.dim(d) = d == 0 ? rows : n;
        }
      }
      const Operand outputs[] = {
          Operand::Dense(first, kType, {rows, n}),
          Operand::Dense(out[1].data(), kType, {rows, n})};
      HostMap(WithChains(has_chains), *expression, inputs, outputs);
      if (is_in_place) out[0] = in;
    }
    CAPTURE(seed);
    for (int k = 0; k < 2; ++k) {
      for (size_t i = 0; i < x.size(); ++i) {
        const float a = results[0][k][i], b = results[1][k][i];
        CHECK((std::isnan(a) ? std::isnan(b)
                             : std::memcmp(&a, &b, sizeof(a)) == 0));
      }
    }
  }
  CHECK(num_chains > 300);
}

TEST_CASE("a chain that reads and writes memory is computed at once") {
  const auto expression = MakeExpression({kType}, {kType}, [](Value v) {
    return Max((Abs(v) * 2 + 1) * v - 3, v) * v + 4;
  });
  constexpr int64_t kSize = 100000;
  Floats x = RandomChains(1).Reals(kSize), y(x.size());
  const Operand in = Operand::Dense(x.data(), kType, {kSize});
  const Operand out = Operand::Dense(y.data(), kType, {kSize});
  num_chains = 0;
  HostMap(WithChains(true), *expression, absl::MakeConstSpan(&in, 1),
          absl::MakeConstSpan(&out, 1));
  CHECK(num_chains == 1);
}

}  // namespace
}  // namespace tfplug::chain_test
