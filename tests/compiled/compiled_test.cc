// SPDX-License-Identifier: Apache-2.0
#include "tfplug/compiled/compiled.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "compiled/cpp_backend.h"
#include "tfplug/primitives/reference_backend.h"
#include "tfplug/testing/backend_conformance.h"

namespace tfplug::compiled_test {
namespace {

// If `seconds` is 0, checks each subject once, or as many as `most_seconds` allow.
absl::Status Check(CppBackend& backend, double seconds,
                   double most_seconds = HUGE_VAL) {
  Fixture<minimal::Platform> fixture;
  testing::BackendConformanceOptions options;
  options.seconds = seconds;
  options.most_seconds = most_seconds;
  return CheckBackend(backend, fixture.device(), options);
}

// Compiles several hundred programs: C++ for a CPU, and C for a GPU.
// CONFORMANCE_SECONDS checks all types and both languages for both, for longer.
TEST_CASE("generated kernels conform") {
  const char* const seconds = std::getenv("CONFORMANCE_SECONDS");
  std::vector<DataType> types, gpu_types;
  if (seconds == nullptr) {
    gpu_types = {DataType::kFloat, DataType::kBool, DataType::kInt64};
    types = gpu_types;
    types.insert(types.end(), {DataType::kHalf, DataType::kUint8});
  }
  for (const int kind : {0, 3, 1, 2}) {
    const bool is_cpu = kind % 2 == 0, is_c = kind / 2 == 1;
    if (seconds == nullptr && kind != 0 && kind != 3) continue;
    CAPTURE(is_cpu);
    CAPTURE(is_c);
    CppBackend backend(is_cpu, is_cpu ? types : gpu_types, "", UINT32_MAX,
                       is_c ? PlainC() : Cpp());
    CHECK(Check(backend, seconds != nullptr ? std::atof(seconds) : 0) ==
          absl::OkStatus());
    CHECK(backend.compilations < backend.launches);
  }
}

TEST_CASE("a program serves all sizes, and is compiled once") {
  CppBackend backend(true, {});
  for (const size_t size : {2, 3, 5000}) {
    std::vector<float> x(size, 1);
    REQUIRE(AddOne(backend, x) == absl::OkStatus());
    for (const float value : x) CHECK(value == 2);
  }
  CHECK(backend.compilations == 1);
}

TEST_CASE("more groups than one dimension has are in rows") {
  CppBackend backend(true, {}, "", 3);
  std::vector<float> x(size_t{8} * 256, 1);  // 8 groups: 3 rows of 3
  CHECK(AddOne(backend, x) == absl::OkStatus());
  CHECK(std::count(x.begin(), x.end(), 2.0f) == 8 * 256);
  x.resize(size_t{10} * 256);
  CHECK(absl::IsUnimplemented(AddOne(backend, x)));
}

// Returns C++ as a language without a form for CPUs.
const Language& CppItems() {
  static const Language* const language = [] {
    auto* made = new Language(Cpp());
    made->has_vectors = false;
    made->prelude = absl::StrReplaceAll(made->prelude, {{"IS_CPU", "NO_CPU"}});
    return made;
  }();
  return *language;
}

// The three forms of kernels, for a device that limits loops if wanted.
template <class Check>
void ForEachForm(int64_t most_iterations, Check check) {
  for (const int form : {0, 1, 2}) {
    CAPTURE(form);
    CppBackend backend(form != 0, {}, "", UINT32_MAX,
                       form == 2 ? CppItems() : Cpp());
    minimal::Stream stream;
    Target target = backend.Programs(stream).target();
    target.most_iterations = most_iterations;
    backend.Programs(stream).SetTarget(target);
    HostScratch scratch;
    check(backend, MakeLauncher(backend, stream, scratch));
  }
}

TEST_CASE("kernels of independent items conform") {
  CppBackend backend(true,
                     {DataType::kFloat, DataType::kBool, DataType::kInt64}, "",
                     UINT32_MAX, CppItems());
  CHECK(Check(backend, 0, /*most_seconds=*/30) == absl::OkStatus());
}

TEST_CASE("long reductions are computed in parts") {
  Reduction sum;
  sum.kind = ReduceKind::kSum;
  sum.map = *MakeExpression(
      {DataType::kFloat, DataType::kInt64}, {DataType::kInt64},
      [](Value x, Value index) { return Cast(x, DataType::kInt64) + index; });
  sum.finish =
      *MakeExpression({DataType::kInt64, DataType::kInt64}, {DataType::kInt64},
                      [](Value x, Value y) { return x * y; });
  const auto check = [&](Launcher& launcher, int64_t rows, int64_t size,
                         bool is_along_rows) {
    std::vector<float> x(static_cast<size_t>(rows * size));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7);
    Operand in, index = Operand::Index(5),
                factor = Operand::Scalar(DataType::kInt64, 3);
    in.data = x.data();
    in.AddDim(rows, is_along_rows ? size : 1)
        .AddDim(size, is_along_rows ? 1 : rows);
    index.AddDim(rows, 0).AddDim(size, 1);
    factor.AddDim(rows, 0).AddDim(size, 0);
    std::vector<int64_t> y(static_cast<size_t>(rows), -1);
    REQUIRE(launcher.Reduce(sum, {in, index, factor},
                            {Operand::Dense(y.data(), DataType::kInt64,
                                            {rows})}) == absl::OkStatus());
    for (int64_t row = 0; row < rows; ++row) {
      int64_t want = 0;
      for (int64_t i = 0; i < size; ++i) {
        const float value =
            x[static_cast<size_t>(row * in.stride(0) + i * in.stride(1))];
        want += static_cast<int64_t>(value) + i + 5;
      }
      CHECK(y[static_cast<size_t>(row)] == 3 * want);
    }
  };
  ForEachForm(INT64_MAX, [&](CppBackend& backend, Launcher launcher) {
    Operand none, index = Operand::Index(5),
                  factor = Operand::Scalar(DataType::kInt64, 3);
    for (Operand* const operand : {&none, &index, &factor}) {
      operand->AddDim(1, 0).AddDim(6, 2).AddDim(0, 9).AddDim(7, 3);
    }
    int64_t zero = -1;
    CHECK(launcher.Reduce(sum, {none, index, factor},
                          {Operand::Dense(&zero, DataType::kInt64, {1})}) ==
          absl::OkStatus());
    CHECK(zero == 0);
    backend.launches = 0;
    check(launcher, 1, 1 << 21, true);  // a sum would be one group's
    CHECK(backend.launches == 2);
    check(launcher, 2, 2097143, false);  // a prime
    CHECK(backend.launches >= 5);        // and the rest
    const int before = backend.launches;
    check(launcher, 1000, 30, false);
    CHECK(backend.launches == before + 1);
  });
  ForEachForm(100, [&](CppBackend& backend, Launcher launcher) {
    check(launcher, 70000, 128, false);  // enough groups, whose items loop
    CHECK(backend.launches == 2);
    check(launcher, 5000, 211, false);  // three parts, and one more term
    CHECK(backend.launches == 5);
  });
}

TEST_CASE("products of great depth are computed in parts") {
  const auto check = [](Launcher& launcher, DataType type, bool has_map) {
    const int64_t m = 3, n = 5, k = 4999, batch = 2;
    std::vector<float> a(static_cast<size_t>(batch * m * k)),
        b(static_cast<size_t>(batch * k * n));
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 3);
    for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 2);
    const auto dense = [&](std::vector<float>& x, int64_t rows,
                           int64_t columns) {
      return Operand::Dense(x.data(), DataType::kFloat, {batch, rows, columns});
    };
    // As the type.
    std::vector<double> memory[2];
    const auto convert = [&](const Operand& from, std::vector<double>& to) {
      to.resize(static_cast<size_t>(from.num_elements()));
      Operand view = Operand::Dense(to.data(), type, ir::DimsOf(from));
      REQUIRE(launcher.Map(**primitives::ConversionOf(DataType::kFloat, type),
                           {from}, {view}) == absl::OkStatus());
      return view;
    };
    std::vector<float> y(static_cast<size_t>(batch * m * n), -1);
    std::vector<double> narrow(y.size());
    const Operand to = dense(y, m, n),
                  c = Operand::Dense(narrow.data(), type, ir::DimsOf(to)),
                  x = convert(dense(a, m, k), memory[0]),
                  z = convert(dense(b, k, n), memory[1]);
    if (has_map) {
      const auto plus_one = MakeExpression(
          {type}, {DataType::kFloat},
          [](Value product) { return Cast(product, DataType::kFloat) + 1; });
      REQUIRE(launcher.MatMulMap(x, z, *plus_one, {}, {to}) ==
              absl::OkStatus());
    } else {
      REQUIRE(launcher.MatMul(x, z, c) == absl::OkStatus());
      REQUIRE(launcher.Map(**primitives::ConversionOf(type, DataType::kFloat),
                           {c}, {to}) == absl::OkStatus());
    }
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t item = i / 15, row = i / 5 % 3, column = i % 5;
      double want = has_map ? 1 : 0;
      for (size_t d = 0; d < 4999; ++d) {
        want += double{a[(item * 3 + row) * 4999 + d]} *
                double{b[(item * 4999 + d) * 5 + column]};
      }
      CHECK(y[i] == doctest::Approx(want).epsilon(
                        type == DataType::kHalf ? 1e-3 : 1e-9));
    }
  };
  for (const int64_t most : {int64_t{INT64_MAX}, int64_t{300}}) {
    ForEachForm(most, [&](CppBackend& backend, Launcher launcher) {
      check(launcher, DataType::kFloat, false);
      CHECK(backend.launches >= 3 + 2);  // with the conversions
      check(launcher, DataType::kFloat, true);
      check(launcher, DataType::kHalf, false);
      check(launcher, DataType::kHalf, true);
    });
  }
}

}  // namespace
}  // namespace tfplug::compiled_test
