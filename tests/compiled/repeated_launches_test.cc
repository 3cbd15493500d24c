// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "compiled/cpp_backend.h"
#include "tfplug/testing/internal/random_views.h"

// Launches of programs whose layouts are kept.
namespace tfplug::repeated_launches_test {
namespace {

using compiled_test::AddOne;
using compiled_test::CppBackend;

// Calls check(a, start, b, y) for operands of several dimensions and strides,
// three times with other numbers: views of floats of equal dimensions, and an
// index of one dimension.
template <class Check>
void ForEachLayout(Check check) {
  // Small numbers, whose sums and products are exact.
  float number = 0;
  const auto next = [&] { return number = number < 60 ? number + 1 : 0; };
  for (const testing::Dims& dims :
       std::vector<testing::Dims>{{3, 4}, {2, 4}, {5, 3}}) {
    for (const int64_t pitch : {4, 6, 9}) {
      for (const int index_dim : {0, 1}) {
        for (int run = 0; run < 3; ++run) {
          std::vector<float> a(60), y(60);
          for (float& x : a) x = next();
          Operand view_a, view_y, index = Operand::Index(int64_t{100} * run);
          view_a.data = a.data();
          view_y.data = y.data();
          for (int d = 0; d < 2; ++d) {
            const int64_t size = dims[static_cast<size_t>(d)];
            view_a.AddDim(size, d == 0 ? pitch : 1);
            view_y.AddDim(size, d == 0 ? 1 : 20 - pitch);
            index.AddDim(size, d == index_dim ? 1 : 0);
          }
          Operand scalar = ir::ScalarOf(DataType::kFloat, next(), view_a);
          CAPTURE(dims[0]);
          CAPTURE(pitch);
          CAPTURE(index_dim);
          check(view_a, index, scalar, view_y);
        }
      }
    }
  }
}
float& At(const Operand& view, const testing::Dims& index) {
  return static_cast<float*>(view.data)[testing::OffsetOf(view, index)];
}
double RealOf(const Operand& scalar) {
  double real;
  std::memcpy(&real, &scalar.scalar, sizeof(real));
  return real;
}

TEST_CASE("a repeated launch has its own addresses and scalars") {
  CppBackend backend(true, {});
  minimal::Stream stream;
  HostScratch scratch;
  Launcher launcher = MakeLauncher(backend, stream, scratch);
  const auto expression =
      MakeExpression({DataType::kFloat, DataType::kInt64, DataType::kFloat},
                     {DataType::kFloat}, [](Value a, Value index, Value b) {
                       return a * b + Cast(index, DataType::kFloat);
                     });
  const auto expected = [](const Operand& a, const Operand& index,
                           const Operand& b, const testing::Dims& at) {
    return At(a, at) * RealOf(b) + static_cast<double>(index.scalar) +
           static_cast<double>(testing::OffsetOf(index, at));
  };
  ForEachLayout([&](auto& a, auto& index, auto& b, auto& y) {
    REQUIRE(launcher.Map(*expression, {a, index, b}, {y}) == absl::OkStatus());
    testing::ForEachIndex({a.dim(0), a.dim(1)}, [&](const auto& at) {
      CHECK(At(y, at) == expected(a, index, b, at));
    });
  });
  compiled_internal::PlanCache& plans = backend.Programs(stream).plans();
  CHECK(plans.size() == 18);

  Reduction sum;
  sum.map = *expression;
  ForEachLayout([&](auto& a, auto& index, auto& b, auto& y) {
    y.rank = 1;
    REQUIRE(launcher.Reduce(sum, {a, index, b}, {y}) == absl::OkStatus());
    for (int64_t i = 0; i < a.dim(0); ++i) {
      double total = 0;
      for (int64_t k = 0; k < a.dim(1); ++k) {
        total += expected(a, index, b, {i, k});
      }
      CHECK(At(y, {i}) == total);
    }
  });
  CHECK(plans.size() == 36);
}

// i8 is a type, and no index.
TEST_CASE("an index has the name of no type") {
  for (const Language* const language : {&Cpp(), &PlainC()}) {
    CppBackend backend(true, {}, "", UINT32_MAX, *language);
    minimal::Stream stream;
    HostScratch scratch;
    Launcher launcher = MakeLauncher(backend, stream, scratch);
    const auto expression = MakeExpression({DataType::kInt8}, {DataType::kInt8},
                                           [](Value x) { return x + 1; });
    constexpr int kRank = 10;
    std::vector<int8_t> x(1 << kRank), y(x);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int8_t>(i % 99);
    Operand in = Operand::Dense(x.data(), DataType::kInt8, {}),
            out = Operand::Dense(y.data(), DataType::kInt8, {});
    for (int d = 0; d < kRank; ++d) {  // no two of them can be merged
      in.AddDim(2, int64_t{1} << d);
      out.AddDim(2, int64_t{1} << (kRank - 1 - d));
    }
    REQUIRE(launcher.Map(*expression, {in}, {out}) == absl::OkStatus());
    for (size_t i = 0; i < x.size(); ++i) {
      size_t reversed = 0;
      for (int d = 0; d < kRank; ++d) reversed |= (i >> d & 1) << (9 - d);
      CHECK(y[reversed] == x[i] + 1);
    }
  }
}

// Calls MapFlat with several sizes, expressions and repeated operands, each
// with two kinds of numbers.
template <class B>
void CheckFlat(B& backend) {
  minimal::Stream stream;
  HostScratch scratch;
  Launcher launcher = MakeLauncher(backend, stream, scratch);
  const auto scale_and_compare =
      MakeExpression({DataType::kFloat, DataType::kFloat},
                     {DataType::kFloat, DataType::kBool}, [](Value a, Value b) {
                       return std::vector<Value>{a * b, a > b};
                     });
  const auto sum = MakeExpression(
      {DataType::kFloat, DataType::kFloat, DataType::kFloat},
      {DataType::kFloat}, [](Value a, Value b, Value c) { return a + b + c; });
  REQUIRE(scale_and_compare.ok());
  REQUIRE(sum.ok());
  for (const float number : {1.0f, 5.0f}) {
    for (const size_t n : {0, 1, 2, 7, 1000}) {
      std::vector<float> a(n + 1), b(n + 1), y(n + 1, -1), z(n + 1, -1);
      std::vector<char> greater(n + 1, -1);
      for (size_t i = 0; i <= n; ++i) {
        a[i] = number + static_cast<float>(i % 5);
        b[i] = number * static_cast<float>(i % 3);
      }
      const auto size = static_cast<int64_t>(n);
      for (const uint64_t repeated : {0, 1, 2}) {
        REQUIRE(launcher.MapFlat(*scale_and_compare,
                                 {size,
                                  repeated,
                                  {a.data(), b.data(), y.data(),
                                   greater.data()}}) == absl::OkStatus());
        REQUIRE(
            launcher.MapFlat(
                *sum,
                {size, repeated, {a.data(), b.data(), a.data(), z.data()}}) ==
            absl::OkStatus());
        for (size_t i = 0; i < n; ++i) {
          const float p = a[repeated == 1 ? 0 : i],
                      q = b[repeated == 2 ? 0 : i];
          REQUIRE(y[i] == p * q);
          REQUIRE((greater[i] != 0) == (p > q));
          REQUIRE(z[i] == p + q + a[i]);
        }
        CHECK(y[n] == -1);
        CHECK(z[n] == -1);
        CHECK(greater[n] == -1);
      }
    }
  }
  std::vector<float> x(4);
  CHECK(launcher.MapFlat(*sum, {4, 0, {x.data(), x.data()}}) ==
        primitives::WrongOperands());
  CHECK(launcher.MapFlat(*sum, {0, 0, {x.data()}}) ==
        primitives::WrongOperands());
}

TEST_CASE("arrays are mapped without a description of their dimensions") {
  ReferenceBackend<minimal::Stream> reference;
  CheckFlat(reference);
  CppBackend backend(true, {});
  CheckFlat(backend);
  minimal::Stream stream;
  CHECK(backend.Programs(stream).plans().size() == 4 * 3 * 2);
}

TEST_CASE("a repeated product has its own addresses and scalars") {
  CppBackend backend(true, {});
  minimal::Stream stream;
  HostScratch scratch;
  Launcher launcher = MakeLauncher(backend, stream, scratch);
  const auto expression =
      MakeExpression({DataType::kFloat, DataType::kFloat}, {DataType::kFloat},
                     [](Value product, Value b) { return product * b; });
  const auto multiply = [&](auto number, int64_t m, int64_t depth, bool maps) {
    using T = decltype(number);
    std::vector<T> a(static_cast<size_t>(m * depth)), b(a), c(size_t(m * m));
    std::fill(a.begin(), a.end(), number);
    std::fill(b.begin(), b.end(), T(2));
    const DataType type = kDataTypeOf<T>;
    const auto x = Operand::Dense(a.data(), type, {m, depth});
    const auto y = Operand::Dense(b.data(), type, {depth, m});
    const auto z = Operand::Dense(c.data(), type, {m, m});
    const auto scale = ir::ScalarOf(type, 1.5, z);
    REQUIRE((maps ? launcher.MatMulMap(x, y, *expression,
                                       absl::MakeConstSpan(&scale, 1),
                                       absl::MakeConstSpan(&z, 1))
                  : launcher.MatMul(x, y, z)) == absl::OkStatus());
    const T want = T(2) * number * T(depth) * (maps ? T(1.5) : T(1));
    CHECK(std::count(c.begin(), c.end(), want) == m * m);
  };
  compiled_internal::PlanCache& plans = backend.Programs(stream).plans();
  for (const size_t count : {5, 5}) {
    for (const float number : {1.0f, 3.0f}) {
      multiply(number, 3, 2, false);
      multiply(number, 3, 4, false);
      multiply(number, 70, 2, false);
      multiply(static_cast<double>(number), 3, 2, false);
      multiply(number, 3, 2, true);
      if (number == 3) CHECK(plans.size() == count);
    }
  }
}

TEST_CASE("SetArguments: handles and offsets, then the parameters") {
  AddressSpace<int> addresses;
  char* const first = static_cast<char*>(addresses.Insert(7, 100).value());
  void* pointers[] = {first + 40, nullptr, first};
  int64_t parameters[] = {-1, -1, -1, 55};
  KernelArguments arguments;
  arguments.pointers = pointers;
  arguments.parameters = parameters;
  arguments.parameters_size = sizeof(parameters);
  arguments.offsets = absl::MakeSpan(parameters, 3);
  std::vector<int> handles;
  const auto set = [&](uint32_t i, size_t size, const void* value) {
    if (i == 3) {
      CHECK(size == sizeof(parameters));
      CHECK(static_cast<const int64_t*>(value)[3] == 55);
      return absl::OkStatus();
    }
    CHECK(i == handles.size());
    CHECK(size == sizeof(int));
    handles.push_back(*static_cast<const int*>(value));
    return absl::OkStatus();
  };
  CHECK(SetArguments(arguments, addresses, set) == absl::OkStatus());
  CHECK(handles == std::vector<int>{7, 0, 7});
  CHECK(parameters[0] == 40);
  CHECK(parameters[1] == 0);
  CHECK(parameters[2] == 0);
  int elsewhere = 0;
  pointers[1] = &elsewhere;
  handles.clear();
  CHECK(absl::IsInvalidArgument(SetArguments(arguments, addresses, set)));
  const auto fail = [](uint32_t, size_t, const void*) {
    return absl::InternalError("failed");
  };
  pointers[1] = nullptr;
  CHECK(SetArguments(arguments, addresses, fail) ==
        absl::InternalError("failed"));
}

TEST_CASE("threads launch, and more layouts than are kept") {
  CppBackend backend(true, {});
  std::vector<std::thread> threads;
  threads.reserve(4);
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t size = 1; size <= 1200; ++size) {
        std::vector<float> x(4 * size + 1, 1);
        if (!AddOne(backend, x, t % 2 == 0).ok() || x.front() != 2 ||
            x.back() != 2) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  minimal::Stream stream;
  for (size_t size = 2; size < 8000; size += 2) {
    std::vector<float> x(size, 1);
    REQUIRE(AddOne(backend, x) == absl::OkStatus());
    REQUIRE(AddOne(backend, x, true) == absl::OkStatus());
    REQUIRE(x.back() == 3);
  }
  CHECK(backend.compilations == 1);
  CHECK(backend.Programs(stream).plans().size() ==
        2 * compiled_internal::PlanCache::kMost);
}

}  // namespace
}  // namespace tfplug::repeated_launches_test
