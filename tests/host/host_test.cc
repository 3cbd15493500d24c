// SPDX-License-Identifier: Apache-2.0
#include "tfplug/host/host.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "fixture.h"
#include "minimal_device.h"
#include "primitives/random_arrays.h"
#include "tfplug/host/host_backend.h"
#include "tfplug/ir/value.h"
#include "tfplug/testing/internal/map_cases.h"
#include "tfplug/testing/internal/primitive_run.h"

// The results of reference.h decide.
namespace tfplug::host_test {
namespace {

struct Stream {};

struct Host {
  HostBackend<Stream> backend;
  Stream stream;
  HostScratch scratch;
  Launcher launcher = MakeLauncher(backend, stream, scratch);
};

template <class T>
T Any(Random& random) {
  return T(static_cast<float>(Below(random, 100)) * 0.25f);
}
template <class T>
bool AreEqual(T a, T b) {
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): of the bits of NaN.
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

// Two arrays with the same layout.
template <class T>
struct Twins {
  Twins(Random& random, const Dims& dims)
      : Twins(Random(random), random, dims) {}
  Twins(Random same, Random& random, const Dims& dims)
      : first(same, dims), second(random, dims) {}
  Array<T> first, second;
};

// Larger than those of RandomDims: they take several tiles.
Dims SomeDims(Random& random) {
  Dims dims = testing::RandomDims(random, 5);
  if (Below(random, 2) == 0) {
    dims = {1 + Below(random, 70), 1 + Below(random, 70)};
  }
  if (Below(random, 6) == 0) dims.insert(dims.begin(), 2);
  return dims;
}

TEST_CASE_TEMPLATE("Map of random views", T, ALL_TYPES) {
  constexpr DataType kType = DataTypeOf<T>();
  const Expression expressions[] = {
      *MakeExpression({kType, kType, DataType::kInt64}, {kType},
                      [](Value x, Value y, Value) { return x + y; }),
      *MakeExpression({kType, kType, DataType::kInt64}, {kType},
                      [](Value, Value y, Value) { return y; }),
      *MakeExpression({kType, kType, DataType::kInt64}, {kType, kType},
                      [](Value x, Value y, Value) {
                        return std::array<Value, 2>{y, x};
                      }),
      *MakeExpression(
          {kType, kType, DataType::kInt64},
          {kType, DataType::kBool, DataType::kFloat, kType},
          [](Value x, Value y, Value i) {
            const Value flag = (i & 1) == 0;
            return std::array<Value, 4>{
                Select(flag, x, y) * 2 + 1, x < y,
                Cast(x, DataType::kFloat) + Cast(i, DataType::kFloat),
                Cast(Cast(y, DataType::kInt8), x.type()) + Max(x, y) * y};
          }),
  };
  Random random(5);
  testing::Reference reference;
  Host host;
  for (int run = 0; run < 200; ++run) {
    const Expression& expression = expressions[run % 4];
    const Dims dims = SomeDims(random);
    Array<T> x(random, dims, true), y(random, dims, true);
    x.Fill([&] { return Any<T>(random); });
    y.Fill([&] { return Any<T>(random); });
    Operand index = Operand::Index(3);
    for (size_t d = 0; d < dims.size(); ++d) {
      index.AddDim(dims[d], Below(random, 3));
    }
    Operand second = y.view();
    if (Below(random, 3) == 0) {
      second = Operand::Scalar(kType, ConstantBits(kType, 3, 3));
      for (int64_t size : dims) second.AddDim(size, 0);
    }
    Twins<T> a(random, dims), b(random, dims);
    Twins<bool> less(random, dims);
    Twins<float> sum(random, dims);
    const auto run_on = [&](Launcher& launcher, Array<T>& first,
                            Array<bool>& flag, Array<float>& number,
                            Array<T>& last) {
      std::vector<Operand> in = {x.view(), second, index};
      std::vector<Operand> out = {first.view()};
      if (expression.outputs().size() == 2) out.push_back(last.view());
      if (expression.outputs().size() == 4) {
        out = {first.view(), flag.view(), number.view(), last.view()};
      }
      REQUIRE(launcher.Map(expression, absl::MakeSpan(in), absl::MakeSpan(out))
                  .ok());
    };
    run_on(reference.launcher, a.first, less.first, sum.first, b.first);
    run_on(host.launcher, a.second, less.second, sum.second, b.second);
    ForEachIndex(dims, [&](const Dims& at) {
      CHECK(AreEqual(a.first.at(at), a.second.at(at)));
      CHECK(AreEqual(b.first.at(at), b.second.at(at)));
      CHECK(less.first.at(at) == less.second.at(at));
      CHECK(sum.first.at(at) == sum.second.at(at));
    });
  }
}

// The tiles of a transposed matrix have several rows, and the last one may have
// shorter rows than the others.
TEST_CASE("a transposed matrix and a value for each of its rows") {
  constexpr DataType kType = DataType::kUint64;
  const Expression subtract = *MakeExpression(
      {kType, kType}, {kType}, [](Value x, Value y) { return x - y; });
  constexpr int64_t kRows = 5;
  for (const int64_t columns : {31, 32, 33, 70}) {
    CAPTURE(columns);
    std::vector<uint64_t> x(static_cast<size_t>(kRows * columns)),
        y = {1, 10, 100, 1000, 10000};
    for (size_t i = 0; i < x.size(); ++i) x[i] = 100000 + i;
    std::vector<uint64_t> out(x.size());
    Operand matrix = Operand::Dense(x.data(), kType, {kRows, columns});
    matrix.stride(0) = 1;
    matrix.stride(1) = kRows;
    Operand column = Operand::Dense(y.data(), kType, {kRows});
    column.AddDim(columns, 0);
    HostMap(subtract, {matrix, column},
            {Operand::Dense(out.data(), kType, {kRows, columns})});
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t i = 0; i < columns; ++i) {
        CHECK(out[static_cast<size_t>(row * columns + i)] ==
              x[static_cast<size_t>(row + i * kRows)] -
                  y[static_cast<size_t>(row)]);
      }
    }
  }
}

TEST_CASE("a bool scalar that is not 0 is true") {
  const Expression number =
      *MakeExpression({DataType::kBool}, {DataType::kInt32},
                      [](Value x) { return Cast(x, DataType::kInt32); });
  std::vector<int32_t> out(3);
  const auto view = Operand::Dense(out.data(), DataType::kInt32, {3});
  HostMap(number, {ir::ScalarOf(DataType::kBool, 2, view)}, {view});
  CHECK(out == std::vector<int32_t>{1, 1, 1});
}

TEST_CASE("Map of several operations, which use each other's results") {
  using testing::CaseMaker;
  Fixture<minimal::Platform> fixture;
  HostBackend<minimal::Stream> backend;
  auto& stream = *static_cast<minimal::Stream*>(
      static_cast<void*>(fixture.device().compute().handle()));
  testing::PrimitiveRun run(
      fixture.device(),
      [&](Scratch& scratch) { return MakeLauncher(backend, stream, scratch); },
      /*has_denormals=*/true);
  const testing::Types types = {
      DataType::kFloat, DataType::kDouble, DataType::kHalf,  DataType::kInt32,
      DataType::kInt64, DataType::kInt8,   DataType::kUint32};
  for (const DataType type : types) {
    if (ComputeType(type) != type) continue;
    for (unsigned seed = 0; seed < 40; ++seed) {
      Random random(seed);
      CaseMaker maker(random,
                      seed % 20 == 0 ? testing::kLarge : testing::kRandom,
                      /*has_denormals=*/true, types);
      CAPTURE(seed);
      CHECK(run.Check(MakeProgramCase(maker, type)) == "");
    }
  }
}

TEST_CASE("Map changes its inputs in place") {
  using Pair = std::array<Value, 2>;
  constexpr DataType kFloat = DataType::kFloat;
  const auto swap =
      MakeExpression({kFloat, kFloat}, {kFloat, kFloat}, [](Value x, Value y) {
        return Pair{y, x};
      });
  const auto mix =
      MakeExpression({kFloat, kFloat}, {kFloat, kFloat}, [](Value x, Value y) {
        const Value sum = x + y;
        return Pair{sum, x - y + sum * 2};
      });
  Host host;
  for (const int64_t n : {1, 7, 512, 513, 3000}) {
    std::vector<float> x(static_cast<size_t>(n)), y = x;
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(i);
      y[i] = static_cast<float>(2 * i + 1);
    }
    const Operand views[] = {Operand::Dense(x.data(), kFloat, {n}),
                             Operand::Dense(y.data(), kFloat, {n})};
    REQUIRE(host.launcher.Map(*swap, {views[0], views[1]}, {views[0], views[1]})
                .ok());
    REQUIRE(host.launcher.Map(*mix, {views[0], views[1]}, {views[0], views[1]})
                .ok());
    for (size_t i = 0; i < x.size(); ++i) {
      const auto a = static_cast<float>(2 * i + 1), b = static_cast<float>(i);
      CHECK(x[i] == a + b);
      CHECK(y[i] == a - b + 2 * (a + b));
    }
  }
}

TEST_CASE("each result in the memory of each input, which others still need") {
  constexpr DataType kFloat = DataType::kFloat;
  // Adam: the input and the results m and v are used after m is computed.
  const auto step =
      MakeExpression({kFloat, kFloat, kFloat, kFloat}, {kFloat, kFloat, kFloat},
                     [](Value a, Value m, Value v, Value g) {
                       m = m * 0.5 + g;
                       v = v * 0.25 + g * g;
                       return std::array<Value, 3>{a - m / (Sqrt(v) + 1), m, v};
                     });
  Host host;
  for (const int64_t n : {5, 512, 1300}) {
    const auto size = static_cast<size_t>(n);
    std::array<std::vector<float>, 7> memory;
    const auto fill = [&] {
      for (size_t k = 0; k < memory.size(); ++k) {
        memory[k].resize(size);
        for (size_t i = 0; i < size; ++i) {
          memory[k][i] = static_cast<float>((i * 7 + k * 5) % 11 + 1);
        }
      }
    };
    const auto view = [&](int k) {
      return Operand::Dense(memory[static_cast<size_t>(k)].data(), kFloat, {n});
    };
    const auto run = [&](const std::array<int, 4>& to) {
      REQUIRE(host.launcher
                  .Map(*step, {view(0), view(1), view(2), view(3)},
                       {view(to[0]), view(to[1]), view(to[2])})
                  .ok());
    };
    fill();
    run({4, 5, 6});
    const auto want = memory;
    std::array<int, 4> to = {0, 1, 2, 3};
    do {
      CAPTURE(to[0] * 100 + to[1] * 10 + to[2]);
      fill();
      run(to);
      for (size_t k = 0; k < 3; ++k) {
        CHECK(memory[static_cast<size_t>(to[k])] == want[4 + k]);
      }
    } while (std::next_permutation(to.begin(), to.end()));
  }
}

// Compares the conversion of From to T on the host with the reference's.
template <class From, class T>
void CheckConversion(unsigned seed) {
  ExpressionBuilder builder;
  builder.Output(builder.Input(kDataTypeOf<From>), kDataTypeOf<T>);
  const auto convert = std::move(builder).Build();
  Random random(seed);
  testing::Reference reference;
  Host host;
  const Dims dims = SomeDims(random);
  Array<From> in(random, dims);
  in.Fill([&] { return Any<From>(random); });
  Twins<T> out(random, dims);
  REQUIRE(
      reference.launcher.Map(*convert, {in.view()}, {out.first.view()}).ok());
  REQUIRE(host.launcher.Map(*convert, {in.view()}, {out.second.view()}).ok());
  ForEachIndex(dims, [&](const Dims& at) {
    CHECK(AreEqual(out.first.at(at), out.second.at(at)));
  });
}

TEST_CASE_TEMPLATE("outputs of another type than their values", T, ALL_TYPES) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    CheckConversion<float, T>(seed);
    CheckConversion<double, T>(seed);
    CheckConversion<int32_t, T>(seed);
    CheckConversion<uint64_t, T>(seed);
    CheckConversion<bool, T>(seed);
  }
}

TEST_CASE("Elements of an axis") {
  ExpressionBuilder builder;
  const Value index = builder.Input(DataType::kInt32);
  const int table = builder.AxisInput(DataType::kBfloat16);
  builder.Output(builder.Element(table, Cast(index, DataType::kInt64)),
                 DataType::kBfloat16);
  const auto gather = std::move(builder).Build();
  Random random(9);
  testing::Reference reference;
  Host host;
  for (int run = 0; run < 100; ++run) {
    const Dims dims = {1 + Below(random, 40), 1 + Below(random, 40)};
    const int64_t size = 1 + Below(random, 9);
    Array<int32_t> indices(random, dims, true);
    indices.Fill([&] { return static_cast<int32_t>(Below(random, 14) - 2); });
    Array<BFloat16> elements(random, {dims[0], dims[1], size}, true);
    elements.Fill([&] { return Any<BFloat16>(random); });
    Operand axis = elements.view();
    axis.rank = 2;
    axis.axis_size = size;
    axis.axis_stride = elements.view().stride(2);
    Twins<BFloat16> out(random, dims);
    REQUIRE(reference.launcher
                .Map(*gather, {indices.view(), axis}, {out.first.view()})
                .ok());
    REQUIRE(
        host.launcher.Map(*gather, {indices.view(), axis}, {out.second.view()})
            .ok());
    ForEachIndex(dims, [&](const Dims& at) {
      CHECK(AreEqual(out.first.at(at), out.second.at(at)));
    });
  }
}

TEST_CASE_TEMPLATE("Reduce of random views", T, ALL_TYPES) {
  constexpr DataType kType = DataTypeOf<T>();
  const DataType computed = ComputeType(kType);
  Random random(6);
  testing::Reference reference;
  Host host;
  for (int run = 0; run < 240; ++run) {
    Reduction reduction;
    reduction.kind = static_cast<ReduceKind>(run % 4);
    const bool is_product = reduction.kind == ReduceKind::kProduct;
    const bool is_plain = Below(random, 2) == 0;
    const auto map = [&](Value x, Value y) { return is_plain ? x : Max(x, y); };
    reduction.map = is_plain && kType == computed
                        ? *CastExpression(kType, computed)
                        : *MakeExpression({kType, kType}, {computed}, map);
    reduction.finish = *MakeExpression(
        {computed, kType}, {kType, computed}, [](Value total, Value extra) {
          return std::array<Value, 2>{total + extra, total};
        });
    const Dims dims = SomeDims(random);
    const auto kept = static_cast<std::ptrdiff_t>(
        Below(random, static_cast<int64_t>(dims.size()) + 1));
    const Dims kept_dims(dims.begin(), dims.begin() + kept);
    Array<T> x(random, dims, true), y(random, dims, true);
    Array<T> extra(random, kept_dims, true);
    // Sums and products are exact.
    const auto make = [&] {
      return T(is_product || sizeof(T) < 4
                   ? (is_product || Below(random, 100) == 0 ? 1.0f : 0.0f)
                   : static_cast<float>(Below(random, 5)));
    };
    x.Fill(make);
    y.Fill(make);
    extra.Fill(make);
    Operand extra_view = extra.view();
    for (size_t d = kept_dims.size(); d < dims.size(); ++d) {
      extra_view.AddDim(dims[d], 0);
    }
    using C = ir::Computed<T>;
    Twins<T> a(random, kept_dims);
    Twins<C> b(random, kept_dims);
    std::vector<Operand> in = {x.view(), y.view(), extra_view};
    if (reduction.map.inputs().size() == 1) in.erase(in.begin() + 1);
    std::vector<Operand> in2 = in;
    std::vector<Operand> out = {a.first.view(), b.first.view()};
    std::vector<Operand> out2 = {a.second.view(), b.second.view()};
    REQUIRE(reference.launcher
                .Reduce(reduction, absl::MakeSpan(in), absl::MakeSpan(out))
                .ok());
    REQUIRE(host.launcher
                .Reduce(reduction, absl::MakeSpan(in2), absl::MakeSpan(out2))
                .ok());
    ForEachIndex(kept_dims, [&](const Dims& at) {
      CHECK(AreEqual(a.first.at(at), a.second.at(at)));
      CHECK(AreEqual(b.first.at(at), b.second.at(at)));
    });
  }
}

TEST_CASE("sums of floats are accurate") {
  constexpr DataType kFloat = DataType::kFloat;
  Reduction sum;
  sum.map = *CastExpression(kFloat, kFloat);
  sum.finish = sum.map;
  Host host;
  std::vector<float> x(1 << 20, 0.1f);
  float y = 0, columns[4] = {};
  REQUIRE(host.launcher
              .Reduce(sum, {Operand::Dense(x.data(), kFloat, {1 << 20})},
                      {Operand::Dense(&y, kFloat, {})})
              .ok());
  CHECK(y == doctest::Approx(104857.6).epsilon(1e-6));
  Operand rows = Operand::Dense(x.data(), kFloat, {4, 1 << 18});
  rows.stride(0) = 1;
  rows.stride(1) = 4;
  REQUIRE(
      host.launcher.Reduce(sum, {rows}, {Operand::Dense(columns, kFloat, {4})})
          .ok());
  for (float column : columns) {
    CHECK(column == doctest::Approx(26214.4).epsilon(1e-6));
  }
}

TEST_CASE("Reduce of no elements, and maxima with NaN") {
  constexpr DataType kFloat = DataType::kFloat;
  Reduction max;
  max.kind = ReduceKind::kMax;
  max.map = *CastExpression(kFloat, kFloat);
  max.finish = max.map;
  Host host;
  std::vector<float> x(300, 1), y(3, 0);
  REQUIRE(host.launcher
              .Reduce(max, {Operand::Dense(x.data(), kFloat, {3, 0})},
                      {Operand::Dense(y.data(), kFloat, {3})})
              .ok());
  for (float value : y) CHECK(value == -INFINITY);
  x[150] = NAN;
  REQUIRE(host.launcher
              .Reduce(max, {Operand::Dense(x.data(), kFloat, {3, 100})},
                      {Operand::Dense(y.data(), kFloat, {3})})
              .ok());
  CHECK(y[0] == 1);
  CHECK(std::isnan(y[1]));
  CHECK(y[2] == 1);
}

}  // namespace
}  // namespace tfplug::host_test
