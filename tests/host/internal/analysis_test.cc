// SPDX-License-Identifier: Apache-2.0
#include "tfplug/host/internal/analysis.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "tfplug/ir/serialize.h"
#include "tfplug/ir/value.h"

namespace tfplug::analysis_test {
namespace {

using host_internal::HostAnalysis;

constexpr DataType kFloat = DataType::kFloat;

TEST_CASE("values that are not needed at the same time share a register") {
  const auto chain = MakeExpression({kFloat}, {kFloat}, [](Value x) {
    for (int i = 0; i < 50; ++i) x = Exp(x) * x;
    return x;
  });
  CHECK(HostAnalysis(*chain).num_registers() == 3);
}

Expression Parse(const std::string& text) {
  const auto parsed = ParseExpression(text);
  REQUIRE_MESSAGE(parsed.ok(), parsed.status().ToString());
  return *parsed;
}

// Returns an expression of many values, some of which are used at once and
// others late.
Expression RandomExpression(std::mt19937& random) {
  const auto below = [&](size_t n) {
    return static_cast<int32_t>(random() % static_cast<uint32_t>(n));
  };
  std::vector<Instruction> all;
  const size_t size = 2 + random() % 30;
  for (size_t i = 0; i < size; ++i) {
    Instruction in;
    const int kind = i == 0 ? 0 : below(8);
    if (kind == 0) {
      in = {Opcode::kInput, kFloat, below(3), -1, -1, 0};
    } else if (kind == 1) {
      in = {Opcode::kConstant, kFloat, -1, -1, -1, random()};
    } else if (kind == 2) {
      in = {Opcode::kNeg, kFloat, below(i), -1, -1, 0};
    } else {
      const auto near = static_cast<int32_t>(i - 1);
      in = {Opcode::kAdd, kFloat, kind == 3 ? below(i) : near, below(i), -1, 0};
    }
    all.push_back(in);
  }
  std::vector<Expression::Output> outputs = {
      {static_cast<int32_t>(size) - 1, kFloat}};
  if (random() % 2 == 0) outputs.push_back({below(size), kFloat});
  const auto made = Expression::Make({kFloat, kFloat, kFloat}, all, outputs);
  REQUIRE_MESSAGE(made.ok(), made.status().ToString());
  return *made;
}

TEST_CASE(
    "values that are needed at the same time are in different registers") {
  std::mt19937 random(7);
  for (int run = 0; run < 500; ++run) {
    const Expression expression = RandomExpression(random);
    CAPTURE(Serialize(expression));
    const HostAnalysis analysis(expression);
    const auto& all = expression.instructions();
    const size_t n = all.size();
    // The uses of a value are instructions, or n for an output.
    std::vector<std::vector<size_t>> uses(n);
    for (size_t i = 0; i < n; ++i) {
      if (all[i].opcode == Opcode::kInput) continue;
      for (const int32_t value : {all[i].a, all[i].b, all[i].c}) {
        if (value >= 0) uses[static_cast<size_t>(value)].push_back(i);
      }
    }
    for (const auto& output : expression.outputs()) {
      uses[static_cast<size_t>(output.value)].push_back(n);
    }
    const auto last_use = [&](size_t value) {
      return uses[value].empty() ? value : uses[value].back();
    };
    for (size_t i = 0; i < n; ++i) {
      const int reg = analysis[i].register_index;
      CHECK(reg >= 0);
      CHECK(reg < analysis.num_registers());
      bool only_next = !uses[i].empty() && i + 1 < n;
      for (const size_t use : uses[i]) only_next &= use == i + 1;
      CHECK(analysis.OnlyNextUses(i) == only_next);
      for (size_t k = 0; k < i; ++k) {
        if (analysis[k].register_index != reg) continue;
        CHECK(all[k].opcode != Opcode::kConstant);
        CHECK(all[i].opcode != Opcode::kConstant);
        CHECK(last_use(k) < i);
      }
    }
  }
}

TEST_CASE(
    "long expressions are built in linear time, and registers are reused") {
  std::string text = "float;input:float 0";
  constexpr int kLength = 100000;
  for (int i = 0; i < kLength; ++i) {
    text += ";neg:float " + std::to_string(i);
  }
  const Expression expression =
      Parse(text + ";" + std::to_string(kLength) + ":float");
  CHECK(HostAnalysis(expression).num_registers() == 2);
}

TEST_CASE("uses of values") {
  // input, input, lt, select
  const auto select =
      MakeExpression({kFloat, kFloat}, {kFloat},
                     [](Value x, Value y) { return Select(x < y, y, y); });
  const HostAnalysis analysis(*select);
  CHECK(analysis[0].uses == 1);
  CHECK(analysis[0].last_use == 2);
  CHECK(analysis[1].uses == 2);
  CHECK(analysis[1].last_use == 3);
  CHECK(analysis[3].uses == 1);
  CHECK(analysis[3].last_use == 4);
  CHECK(!analysis.OnlyNextUses(0));
  CHECK(!analysis.OnlyNextUses(1));  // by the next two
  CHECK(analysis.OnlyNextUses(2));
  CHECK(!analysis.OnlyNextUses(3));  // an output
  CHECK(analysis.widest_value() == 4);
}

TEST_CASE("an element of an axis uses its index") {
  ExpressionBuilder builder;
  const Value index = builder.Input(DataType::kInt64);
  builder.Output(Exp(builder.Element(builder.AxisInput(kFloat), index)),
                 kFloat);
  const auto gather = std::move(builder).Build();
  const HostAnalysis analysis(*gather);
  CHECK(analysis[0].last_use == 1);
  CHECK(analysis.widest_value() == 8);
}

TEST_CASE("equal expressions have one analysis") {
  const auto make = [] {
    return *MakeExpression({kFloat}, {kFloat}, [](Value x) { return Exp(x); });
  };
  const Expression exp = make(), other = make();
  CHECK(&exp.Analysis<HostAnalysis>() == &other.Analysis<HostAnalysis>());
  CHECK(exp.Analysis<HostAnalysis>().widest_value() == 4);
}

struct OtherAnalysis {
  explicit OtherAnalysis(const Expression& expression)
      : size(expression.instructions().size()) {}
  size_t size;
};

TEST_CASE("an expression and its copies have one analysis of each type") {
  const Expression exp =
      *MakeExpression({kFloat}, {kFloat}, [](Value x) { return Exp(x); });
  Expression copy;
  copy = exp;
  const auto* const analysis = &exp.Analysis<HostAnalysis>();
  CHECK(exp.Analysis<OtherAnalysis>().size == 2);
  CHECK(&copy.Analysis<HostAnalysis>() == analysis);
  CHECK(&copy.Analysis<OtherAnalysis>() == &exp.Analysis<OtherAnalysis>());
}

}  // namespace
}  // namespace tfplug::analysis_test
