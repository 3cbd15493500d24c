// SPDX-License-Identifier: Apache-2.0
#include "tfplug/primitives/backend.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numeric>
#include <vector>

#include "tfplug/ir/value.h"
#include "tfplug/ir/views.h"
#include "tfplug/primitives/elements.h"
#include "tfplug/testing/internal/random_views.h"

namespace backend_test {
namespace {

using tfplug::DataType;
using tfplug::Operand;
using tfplug::ReduceKind;
using tfplug::ScatterKind;
using tfplug::testing::Array;
using tfplug::testing::Below;
using tfplug::testing::Dims;
using tfplug::testing::ForEachIndex;
using tfplug::testing::Random;

TEST_CASE("MatMul of transposed, repeated and empty matrices") {
  Random random(4);
  tfplug::testing::Reference reference;
  for (int run = 0; run < 100; ++run) {
    const int64_t batch = 1 + Below(random, 3), m = 1 + Below(random, 9),
                  n = 1 + Below(random, 9), k = Below(random, 9);
    Array<float> a(random, {batch, m, k}, true), b(random, {batch, k, n}, true),
        c(random, {batch, m, n});
    const auto make = [&] { return static_cast<float>(Below(random, 9)); };
    a.Fill(make);
    b.Fill(make);
    REQUIRE(reference.launcher.MatMul(a.view(), b.view(), c.view()).ok());
    ForEachIndex({batch, m, n}, [&](const Dims& at) {
      float sum = 0;
      for (int64_t i = 0; i < k; ++i) {
        sum += a.at({at[0], at[1], i}) * b.at({at[0], i, at[2]});
      }
      CHECK(c.at(at) == sum);
    });
  }
}

TEST_CASE_TEMPLATE("Scatter", T, float, int32_t, tfplug::BFloat16) {
  Random random(5);
  tfplug::testing::Reference reference;
  for (int run = 0; run < 100; ++run) {
    const auto kind = static_cast<ScatterKind>(run % 5);
    const int64_t rows = 1 + Below(random, 5), n = Below(random, 9),
                  inner = 1 + Below(random, 4);
    Array<T> updates(random, {n, inner}, true), out(random, {rows, inner});
    Array<int32_t> indices(random, {n});
    const auto make = [&] { return T(static_cast<float>(Below(random, 3))); };
    updates.Fill(make);
    out.Fill(make);
    indices.Fill([&] { return static_cast<int32_t>(Below(random, 8)) - 1; });
    std::vector<float> want;
    ForEachIndex({rows, inner}, [&](const Dims& at) {
      float value = static_cast<float>(out.at(at));
      for (int64_t i = 0; i < n; ++i) {
        if (indices.at({i}) != at[0]) continue;
        const float update = static_cast<float>(updates.at({i, at[1]}));
        value = kind == ScatterKind::kSet        ? update
                : kind == ScatterKind::kAdd      ? value + update
                : kind == ScatterKind::kMultiply ? value * update
                : kind == ScatterKind::kMax      ? std::max(value, update)
                                                 : std::min(value, update);
      }
      want.push_back(value);
    });
    REQUIRE(reference.launcher
                .Scatter(kind, indices.view(), updates.view(), out.view())
                .ok());
    size_t i = 0;
    ForEachIndex({rows, inner}, [&](const Dims& at) {
      CHECK(static_cast<float>(out.at(at)) == want[i++]);
    });
  }
}

TEST_CASE("Scan along the last dimension") {
  Random random(6);
  tfplug::testing::Reference reference;
  for (int run = 0; run < 60; ++run) {
    const Dims dims = {1 + Below(random, 3), 1 + Below(random, 40)};
    Array<int32_t> x(random, dims, true), y(random, dims);
    x.Fill([&] { return static_cast<int32_t>(Below(random, 9)) - 4; });
    const bool is_sum = run % 2 == 0;
    const auto kind = is_sum ? ReduceKind::kSum : ReduceKind::kMax;
    REQUIRE(reference.launcher.Scan(kind, x.view(), y.view()).ok());
    int32_t total = 0;
    ForEachIndex(dims, [&](const Dims& at) {
      const int32_t value = x.at(at);
      total = at[1] == 0 ? value
              : is_sum   ? total + value
                         : std::max(total, value);
      CHECK(y.at(at) == total);
    });
  }
}

TEST_CASE("Sort finds the first elements in descending order") {
  Random random(7);
  tfplug::testing::Reference reference;
  for (int run = 0; run < 60; ++run) {
    const int64_t outer = 1 + Below(random, 3), size = 1 + Below(random, 20),
                  k = 1 + Below(random, size);
    Array<float> x(random, {outer, size}, true), values(random, {outer, k});
    Array<int32_t> indices(random, {outer, k});
    x.Fill([&] {
      return Below(random, 9) == 0 ? NAN : static_cast<float>(Below(random, 6));
    });
    REQUIRE(
        reference.launcher.Sort(x.view(), values.view(), indices.view()).ok());
    for (int64_t o = 0; o < outer; ++o) {
      std::vector<int32_t> order(static_cast<size_t>(size));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        const float u = x.at({o, a}), v = x.at({o, b});
        return u > v || (std::isnan(u) && !std::isnan(v));
      });
      for (int64_t i = 0; i < k; ++i) {
        CHECK(indices.at({o, i}) == order[static_cast<size_t>(i)]);
        const float u = values.at({o, i}),
                    v = x.at({o, order[static_cast<size_t>(i)]});
        CHECK((u == v || (std::isnan(u) && std::isnan(v))));
      }
    }
  }
}

// Returns how much a transform of `n` complex numbers differs at most from the
// formula in double: at indices whose roots of unity are all 1, -1, i or -i, and
// at the others.
template <class T>
std::array<double, 2> FourierErrors(int64_t n, double sign) {
  tfplug::testing::Reference reference;
  const double turn = 2 * std::acos(-1.0);
  std::vector<T> x(static_cast<size_t>(4 * n)), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i * i % 7) - 3;
  const Dims dims = {2, n, 2};
  const DataType type = tfplug::DataTypeOf<T>();
  REQUIRE(reference.launcher
              .Fourier(sign > 0, Operand::Dense(x.data(), type, dims),
                       Operand::Dense(y.data(), type, dims))
              .ok());
  const auto at = [&](const std::vector<T>& z, int64_t row, int64_t i) {
    const T* const parts = z.data() + 2 * (row * n + i);
    return std::complex<double>(parts[0], parts[1]);
  };
  std::array<double, 2> errors = {};
  ForEachIndex({2, n}, [&](const Dims& to) {
    std::complex<double> sum;
    for (int64_t j = 0; j < n; ++j) {
      const int64_t part = j * to[1] % n;
      sum += at(x, to[0], j) *
             std::polar(1.0, sign * turn * static_cast<double>(part) /
                                 static_cast<double>(n));
    }
    double& error = errors[4 * to[1] % n == 0 ? 0 : 1];
    error = std::max(error, std::abs(at(y, to[0], to[1]) - sum));
  });
  return errors;
}

TEST_CASE("Fourier transforms of small sizes, primes and products") {
  // Sizes above 64 are split if they have factors.
  for (const int64_t n : {1, 2, 4, 6, 8, 67, 72}) {
    for (const double sign : {-1.0, 1.0}) {
      CAPTURE(n);
      const auto [exact, rounded] = FourierErrors<double>(n, sign);
      CHECK(std::max(exact, rounded) < 1e-10);
      if (n > 8) continue;
      const auto [exact_float, rounded_float] = FourierErrors<float>(n, sign);
      CHECK(exact_float < 1e-14);  // That of the formula.
      CHECK(rounded_float < 1e-6);
    }
  }
}

TEST_CASE("Fill writes zeros of every type, and other numbers") {
  tfplug::testing::Reference reference;
  double zeros[] = {1, 2, 3, 4};
  const Operand complex = Operand::Dense(zeros, DataType::kComplex128, {2});
  CHECK(tfplug::primitives::Fill(reference.launcher, complex, 0).ok());
  CHECK(std::count(zeros, zeros + 4, 0.0) == 4);
  float ones[2] = {};
  const Operand vector = Operand::Dense(ones, DataType::kFloat, {2});
  CHECK(tfplug::primitives::Fill(reference.launcher, vector, 1).ok());
  CHECK(ones[0] == 1);
  CHECK(ones[1] == 1);
}

// An author's override is called with the author's stream.
struct CountingStream {
  int products = 0;
};
class CountingBackend : public tfplug::ReferenceBackend<CountingStream> {
 public:
  absl::Status MatMul(CountingStream& stream, tfplug::Launcher& launcher,
                      const Operand& a, const Operand& b,
                      const Operand& c) override {
    ++stream.products;
    return ReferenceBackend::MatMul(stream, launcher, a, b, c);
  }
  absl::Status Map(CountingStream&, const tfplug::Expression&, tfplug::Operands,
                   tfplug::Operands) override {
    return absl::UnavailableError("no map today");
  }
};

TEST_CASE("views with too many dimensions are refused") {
  struct {
    Operand view;
    int64_t after = 12345;  // not overwritten
  } full;
  float element = 1;
  full.view = Operand::Dense(&element, DataType::kFloat,
                             Dims(tfplug::kMaxViewRank, int64_t{1}));
  CHECK(!full.view.lacks_dims);
  const Operand fits = full.view;
  full.view.AddDim(1, 1);
  CHECK(full.after == 12345);
  CHECK(full.view.rank == tfplug::kMaxViewRank);
  tfplug::testing::Reference reference;
  tfplug::Launcher& launcher = reference.launcher;
  const auto negate =
      *tfplug::MakeExpression({DataType::kFloat}, {DataType::kFloat},
                              [](tfplug::Value x) { return -x; });
  tfplug::Reduction sum;
  CHECK(launcher.Map(negate, {fits}, {fits}) == absl::OkStatus());
  CHECK(element == -1);
  for (const Operand& wide : {full.view, tfplug::ir::WithDim(fits, 3, 1), [&] {
                                Operand complex = fits;
                                complex.type = DataType::kComplex128;
                                complex = tfplug::ir::AsWords(complex);
                                complex.type = DataType::kFloat;
                                return complex;
                              }()}) {
    for (const absl::Status& status :
         {launcher.Map(negate, {wide}, {fits}),
          launcher.Map(negate, {fits}, {wide}),
          launcher.Reduce(sum, {wide}, {fits}),
          launcher.Reduce(sum, {fits}, {wide}),
          launcher.MatMul(wide, fits, fits),
          launcher.Scatter(ScatterKind::kSet, fits, wide, fits),
          launcher.Scan(ReduceKind::kSum, fits, wide),
          launcher.Sort(wide, fits, fits),
          launcher.MatMulMap(fits, wide, negate, {}, {fits}),
          launcher
              .Allocate(DataType::kFloat,
                        Dims(tfplug::kMaxViewRank + 1, int64_t{1}))
              .status()}) {
      CHECK(absl::IsUnimplemented(status));
    }
  }
  CHECK(element == -1);
}

TEST_CASE("operands must have the types of an expression") {
  float in = 2;
  int64_t out[2] = {7, 7};
  tfplug::testing::Reference reference;
  tfplug::Launcher& launcher = reference.launcher;
  const Operand x = Operand::Dense(&in, DataType::kFloat, {});
  const Operand y = Operand::Dense(&out, DataType::kInt64, {});
  const auto copy = *tfplug::CastExpression(DataType::kFloat, DataType::kFloat);
  tfplug::Reduction sum;
  CHECK(absl::IsInternal(launcher.Map(copy, {y}, {x})));
  CHECK(absl::IsInternal(launcher.Map(copy, {x}, {y})));
  CHECK(absl::IsInternal(launcher.Map(copy, {x}, {x, x})));
  CHECK(absl::IsInternal(launcher.Reduce(sum, {x}, {y})));
  CHECK(absl::IsInternal(launcher.Reduce(sum, {x, x}, {x})));
  const Operand matrix = Operand::Dense(&in, DataType::kFloat, {1, 1});
  CHECK(absl::IsInternal(launcher.MatMulMap(matrix, matrix, copy, {}, {y})));
  CHECK(absl::IsInternal(
      launcher.MatMulMap(matrix, matrix, copy, {matrix}, {matrix})));
  CHECK(out[0] == 7);
}

TEST_CASE("arrays without dimensions may be repeated elements") {
  const auto difference = *tfplug::MakeExpression(
      {DataType::kFloat, DataType::kFloat}, {DataType::kFloat},
      [](tfplug::Value x, tfplug::Value y) { return x - y; });
  float x[] = {5, 7, 9}, y = 1, out[3] = {};
  tfplug::testing::Reference reference;
  CHECK(reference.launcher.MapFlat(difference, {3, 2, {x, &y, out}}).ok());
  CHECK(std::vector<float>(out, out + 3) == std::vector<float>{4, 6, 8});
}

TEST_CASE("overrides and failures of primitives") {
  CountingBackend backend;
  CountingStream stream;
  tfplug::HostScratch scratch;
  tfplug::Launcher launcher = tfplug::MakeLauncher(backend, stream, scratch);
  float a = 3, b = 4, c = 0;
  const auto matrix = [](float* x) {
    return Operand::Dense(x, DataType::kFloat, {1, 1});
  };
  CHECK(launcher.MatMul(matrix(&a), matrix(&b), matrix(&c)).ok());
  CHECK(stream.products == 1);
  CHECK(backend.Supports(DataType::kFloat));
  CHECK(c == 12);
  CHECK(launcher.Map(tfplug::Expression(), {matrix(&a)}, {matrix(&c)})
            .message() == "no map today");
}

// Each hook fails with its name.
class NamingBackend : public tfplug::ReferenceBackend<CountingStream> {
 public:
  using Launcher = tfplug::Launcher;
  using Convolution = tfplug::Convolution;
  using In = const Operand&;

  static absl::Status Name(const char* name) {
    return absl::UnavailableError(name);
  }
  absl::Status Conv(CountingStream&, Launcher&, const Convolution&, In, In,
                    In) override {
    return Name("Conv");
  }
  absl::Status ConvInputGradient(CountingStream&, Launcher&, const Convolution&,
                                 In, In, In) override {
    return Name("ConvInputGradient");
  }
  absl::Status ConvFilterGradient(CountingStream&, Launcher&,
                                  const Convolution&, In, In, In) override {
    return Name("ConvFilterGradient");
  }
  absl::Status MatMul(CountingStream&, Launcher&, In, In, In) override {
    return Name("MatMul");
  }
  absl::Status Sort(CountingStream&, Launcher&, In, In, In) override {
    return Name("Sort");
  }
  absl::Status Scatter(CountingStream&, Launcher&, ScatterKind, In, In,
                       In) override {
    return Name("Scatter");
  }
  absl::Status Scan(CountingStream&, Launcher&, ReduceKind, In, In) override {
    return Name("Scan");
  }
};

TEST_CASE("primitives with one signature reach the hook of their name") {
  NamingBackend backend;
  CountingStream stream;
  tfplug::HostScratch scratch;
  tfplug::Launcher launcher = tfplug::MakeLauncher(backend, stream, scratch);
  const Operand x;
  const tfplug::Convolution conv;
  CHECK(launcher.Conv(conv, x, x, x).message() == "Conv");
  CHECK(launcher.ConvInputGradient(conv, x, x, x).message() ==
        "ConvInputGradient");
  CHECK(launcher.ConvFilterGradient(conv, x, x, x).message() ==
        "ConvFilterGradient");
  CHECK(launcher.MatMul(x, x, x).message() == "MatMul");
  CHECK(launcher.Sort(x, x, x).message() == "Sort");
  CHECK(launcher.Scatter(ScatterKind::kSet, x, x, x).message() == "Scatter");
  CHECK(launcher.Scan(ReduceKind::kSum, x, x).message() == "Scan");
}

}  // namespace
}  // namespace backend_test
