// SPDX-License-Identifier: Apache-2.0
#include "tfplug/primitives/reference.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <vector>

#include "primitives/random_arrays.h"
#include "tfplug/ir/value.h"

namespace tfplug::reference_test {
namespace {

template <class T>
T Small(Random& random) {
  return T(static_cast<float>(Below(random, 5)));
}
template <class T>
double Number(T value) {
  return static_cast<double>(value);
}

TEST_CASE_TEMPLATE("Map of random views", T, ALL_TYPES) {
  constexpr DataType kType = DataTypeOf<T>();
  const auto expression = MakeExpression(
      {kType, kType, DataType::kBool}, {kType, kType},
      [](Value x, Value y, Value flag) {
        return std::array<Value, 2>{x * y + 1, Select(flag, x, y)};
      });
  REQUIRE(expression.ok());
  Random random(2);
  testing::Reference reference;
  for (int run = 0; run < 60; ++run) {
    const Dims dims = testing::RandomDims(random, 8);
    Array<T> x(random, dims, true), y(random, dims, true);
    Array<bool> flag(random, dims, true);
    Array<T> out(random, dims), chosen(random, dims);
    x.Fill([&] { return Small<T>(random); });
    y.Fill([&] { return Small<T>(random); });
    flag.Fill([&] { return Below(random, 2) == 0; });
    REQUIRE(reference.launcher
                .Map(*expression, {x.view(), y.view(), flag.view()},
                     {out.view(), chosen.view()})
                .ok());
    ForEachIndex(dims, [&](const Dims& at) {
      CHECK(Number(out.at(at)) == Number(x.at(at)) * Number(y.at(at)) + 1);
      CHECK(Number(chosen.at(at)) == Number(flag.at(at) ? x.at(at) : y.at(at)));
    });
  }
}

double CombineNumbers(ReduceKind kind, double a, double b) {
  switch (kind) {
    case ReduceKind::kSum:
      return a + b;
    case ReduceKind::kProduct:
      return a * b;
    case ReduceKind::kMax:
      return std::max(a, b);
    default:
      return std::min(a, b);
  }
}

TEST_CASE_TEMPLATE("Reduce of random views", T, ALL_TYPES) {
  constexpr DataType kType = DataTypeOf<T>();
  Random random(3);
  testing::Reference reference;
  for (int run = 0; run < 120; ++run) {
    Reduction reduction;
    reduction.kind = static_cast<ReduceKind>(run % 4);
    const bool is_product = reduction.kind == ReduceKind::kProduct;
    const DataType computed = ComputeType(kType);
    reduction.map = *MakeExpression({kType, kType}, {computed},
                                    [](Value x, Value y) { return Max(x, y); });
    reduction.finish =
        *MakeExpression({computed, kType}, {kType},
                        [](Value total, Value extra) { return total + extra; });
    const Dims dims = testing::RandomDims(random, 8);
    const auto kept = static_cast<std::ptrdiff_t>(
        Below(random, static_cast<int64_t>(dims.size()) + 1));
    const Dims kept_dims(dims.begin(), dims.begin() + kept);
    Array<T> x(random, dims, true), y(random, dims, true);
    Array<T> extra(random, kept_dims, true), out(random, kept_dims);
    const auto make = [&] {
      // Sums stay below 128, except of floats, and products are small.
      const bool is_one = is_product || sizeof(T) < 4;
      return is_one ? T(Below(random, 100) == 0 ? 1.0f
                        : is_product            ? 1.0f
                                                : 0.0f)
                    : Small<T>(random);
    };
    x.Fill(make);
    y.Fill(make);
    extra.Fill([&] { return Small<T>(random); });
    Operand extra_view = extra.view();
    for (size_t d = kept_dims.size(); d < dims.size(); ++d) {
      extra_view.AddDim(dims[d], 0);
    }
    std::map<Dims, double> want;
    ForEachIndex(dims, [&](const Dims& at) {
      const double value = std::max(Number(x.at(at)), Number(y.at(at)));
      const Dims key(at.begin(), at.begin() + kept);
      const auto [entry, is_new] = want.try_emplace(key, value);
      if (!is_new) {
        entry->second = CombineNumbers(reduction.kind, entry->second, value);
      }
    });
    REQUIRE(
        reference.launcher
            .Reduce(reduction, {x.view(), y.view(), extra_view}, {out.view()})
            .ok());
    ForEachIndex(kept_dims, [&](const Dims& at) {
      const double expected = want[at] + Number(extra.at(at));
      if (expected < 127) CHECK(Number(out.at(at)) == expected);
    });
  }
}

TEST_CASE("a reduction of no elements is the identity") {
  Reduction reduction;
  testing::Reference reference;
  const auto reduce = [&](ReduceKind kind) {
    reduction.kind = kind;
    float x = 0, y = 7;
    CHECK(reference.launcher
              .Reduce(reduction, {Operand::Dense(&x, DataType::kFloat, {1, 0})},
                      {Operand::Dense(&y, DataType::kFloat, {1})})
              .ok());
    return y;
  };
  CHECK(reduce(ReduceKind::kSum) == 0);
  CHECK(reduce(ReduceKind::kProduct) == 1);
  CHECK(reduce(ReduceKind::kMax) == -INFINITY);
  CHECK(reduce(ReduceKind::kMin) == INFINITY);
}

TEST_CASE("sums of floats are accurate, maxima keep NaN") {
  std::vector<float> x(1000000, 0.1f);
  float sum = 0;
  testing::Reference reference;
  Reduction reduction;
  const auto run = [&] {
    return reference.launcher.Reduce(
        reduction, {Operand::Dense(x.data(), DataType::kFloat, {1000000})},
        {Operand::Dense(&sum, DataType::kFloat, {})});
  };
  REQUIRE(run().ok());
  CHECK(sum == doctest::Approx(100000.0015).epsilon(1e-7));
  x[1234] = NAN;
  reduction.kind = ReduceKind::kMax;
  REQUIRE(run().ok());
  CHECK(std::isnan(sum));
}

TEST_CASE("operands without memory, and elements of an axis") {
  ExpressionBuilder builder;
  const Value row = builder.Input(DataType::kInt64);
  const Value add = builder.Input(DataType::kInt32);
  const int table = builder.AxisInput(DataType::kInt32);
  builder.Output(builder.Element(table, row - 1) + add, DataType::kInt32);
  const auto expression = std::move(builder).Build();
  REQUIRE(expression.ok());
  // y[i, j] = table[i - 1, j] + 100
  int32_t elements[2][3] = {{1, 2, 3}, {4, 5, 6}};
  int32_t y[4][3];
  Operand index = Operand::Index(), hundred;
  index.AddDim(4, 1).AddDim(3, 0);
  hundred = Operand::Scalar(DataType::kInt32, 100).AddDim(4, 0).AddDim(3, 0);
  Operand view;
  view.type = DataType::kInt32;
  view.data = elements;
  view.AddDim(4, 0).AddDim(3, 1);
  view.axis_size = 2;
  view.axis_stride = 3;
  testing::Reference reference;
  REQUIRE(reference.launcher
              .Map(*expression, {index, hundred, view},
                   {Operand::Dense(y, DataType::kInt32, {4, 3})})
              .ok());
  const int32_t want[4][3] = {
      {100, 100, 100}, {101, 102, 103}, {104, 105, 106}, {100, 100, 100}};
  for (int i = 0; i < 12; ++i) CHECK((&y[0][0])[i] == (&want[0][0])[i]);
}

TEST_CASE("operands that do not match the expression are an error") {
  testing::Reference reference;
  double x = 0;
  float y = 0;
  const auto s = reference.launcher.Map(
      Expression(), {Operand::Dense(&x, DataType::kDouble, {})},
      {Operand::Dense(&y, DataType::kFloat, {})});
  CHECK(s.code() == absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace tfplug::reference_test
