// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "compiled/cpp_backend.h"
#include "tfplug/testing/backend_conformance.h"

// Targets, languages and launches that are refused.
namespace tfplug::refused_launches_test {
namespace {

using compiled_test::AddOne;
using compiled_test::CppBackend;

// Checks that a launch of each primitive is refused with this error.
void CheckRefused(CppBackend& backend, const std::string& error) {
  minimal::Stream stream;
  HostScratch scratch;
  Launcher launcher = MakeLauncher(backend, stream, scratch);
  std::vector<float> x(4, 1), y(4);
  const auto square = Operand::Dense(x.data(), DataType::kFloat, {2, 2});
  const auto result = Operand::Dense(y.data(), DataType::kFloat, {2, 2});
  const auto same = MakeExpression({DataType::kFloat}, {DataType::kFloat},
                                   [](Value value) { return value; });
  for (const absl::Status& status :
       {AddOne(backend, x), AddOne(backend, x, /*is_flat=*/true),
        launcher.Map(*same, {square}, {result}),
        launcher.Reduce({ReduceKind::kSum, *same, *same}, {square},
                        {Operand::Dense(y.data(), DataType::kFloat, {2})}),
        launcher.MatMul(square, square, result)}) {
    CHECK(absl::IsFailedPrecondition(status));
    CHECK_MESSAGE(absl::StrContains(status.message(), error), status.message());
  }
  CHECK(backend.compilations == 0);
}

TEST_CASE("a target that kernels cannot be made for is refused") {
  CppBackend backend(true, {});
  minimal::Stream stream;
  backend.Programs(stream).SetTarget({});
  CheckRefused(backend, "set Target::language");
  Target target;
  target.language = &Cpp();
  for (const int size : {-32, 0, 1, 16, 48, 96, 1025, 2048}) {
    target.group_size = size;
    backend.Programs(stream).SetTarget(target);
    CheckRefused(backend, absl::StrCat("Target::group_size is ", size,
                                       "; it must be a power of two"));
  }
  target.group_size = 32;
  target.most_groups = 0;
  backend.Programs(stream).SetTarget(target);
  CheckRefused(backend, "Target::most_groups is 0");
  target.most_groups = 1;
  target.most_iterations = 0;
  backend.Programs(stream).SetTarget(target);
  CheckRefused(backend, "Target::most_iterations 0");
  target.most_iterations = 1;
  for (const int size : {32, 1024}) {
    target.group_size = size;
    backend.Programs(stream).SetTarget(target);
    std::vector<float> x(2, 1);
    CHECK(AddOne(backend, x) == absl::OkStatus());
  }
}

TEST_CASE("a device's limit is met by halving the size of groups") {
  for (const auto& [most, size] :
       {std::pair(1024, 256), {256, 256}, {255, 128}, {64, 64}, {1, 32}}) {
    Target target;
    target.language = &Cpp();
    target.group_size = 256;
    target.LimitGroupSize(static_cast<size_t>(most));
    CHECK(target.group_size == size);
  }
}

// Returns a toy: C++ of a processor with one function of floats.
tfplug::Language ToyLanguage() {
  tfplug::Language toy;
  toy.prelude = absl::StrCat(R"code(
typedef signed char i8; typedef short i16; typedef int i32;
typedef long long i64; typedef unsigned char u8; typedef unsigned short u16;
typedef unsigned u32; typedef unsigned long long u64; typedef float f32;
#define FN static inline
#define UNROLL
#define f32_of_bits(x) __builtin_bit_cast(float, x)
#define bits_of_f32(x) __builtin_bit_cast(unsigned, x)
)code",
                             tfplug::kItemLoops);
  toy.kernel = R"code(
struct Parameters {
$FIELDS};
extern "C" void $ENTRY(const unsigned* call, void** arguments) {
const idx group = idx(*call);
$POINTERS
const Parameters& p = *(Parameters*)arguments[$COUNT];
$BODY}
)code";
  toy.pointer = "char* p$K = *(char**)arguments[$K];\n";
  toy.operand = "$T* $X = ($T*)p$K;\n";
  toy.functions = "sqrt=__builtin_sqrtf";
  toy.runs_groups = true;
  return toy;
}

TEST_CASE("a test may have a language of its own") {
  const Language toy = ToyLanguage();
  CppBackend backend(false, {}, "", UINT32_MAX, toy);
  minimal::Stream stream;
  HostScratch scratch;
  Launcher launcher = MakeLauncher(backend, stream, scratch);
  const auto expression =
      MakeExpression({DataType::kFloat}, {DataType::kFloat},
                     [](Value x) { return Erf(Sqrt(x)) + Tan(x); });
  std::vector<float> x(1000), y(1000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 7;
  REQUIRE(launcher.MapFlat(*expression, {1000, 0, {x.data(), y.data()}}) ==
          absl::OkStatus());
  for (size_t i = 0; i < x.size(); ++i) {
    const double a = x[i], want = std::erf(std::sqrt(a)) + std::tan(a);
    CHECK(y[i] == doctest::Approx(want).epsilon(1e-5));
  }
}

TEST_CASE("a language may store with a function") {
  Language toy = ToyLanguage();
  toy.prelude +=
      "template <class T> T Get(const T* x, long i) { return x[i]; }\n"
      "#define PUT_f32(x, i, y, z) x[i] = (y) + (z)\n";
  toy.element = "Get($X, $I)";
  toy.store = "PUT_$T($X, $I, $V, $E)";
  CppBackend backend(false, {}, "", UINT32_MAX, toy);
  std::vector<float> x = {1, 2, 3};
  CHECK(AddOne(backend, x) == absl::OkStatus());
  CHECK(x == std::vector<float>{3, 5, 7});
}

TEST_CASE("an error names a language's template or function that is wrong") {
  const auto check = [](std::string Language::*member, const char* from,
                        const char* to, const char* error) {
    CAPTURE(error);
    Language toy = ToyLanguage();
    toy.*member = absl::StrReplaceAll(toy.*member, {{from, to}});
    CppBackend backend(false, {}, "", UINT32_MAX, toy);
    CheckRefused(backend, error);
  };
  check(&Language::kernel, "$ENTRY", "$NAME",
        "Language::kernel has $NAME, which nothing replaces; its words are "
        "$FIELDS, $BODY, $ENTRY, $COUNT, $POINTERS, $SHARED");
  check(&Language::kernel, "$BODY", "", "Language::kernel lacks $BODY");
  check(&Language::pointer, "$K", "$I", "Language::pointer has $I");
  check(&Language::operand, "$X", "x", "Language::operand lacks $X");
  check(&Language::element, "[$I]", "", "Language::element lacks $I");
  check(&Language::store, "$V", "$X", "Language::store lacks $V");
  check(&Language::shared, "$N", "$SIZE", "Language::shared has $SIZE");
  check(&Language::f32_function, "$F", "", "Language::f32_function lacks $F");
  check(&Language::f64_function, "$F", "$F$G", "f64_function has $G");
  check(&Language::functions, "sqrt=", "sqr=",
        "Language::functions has \"sqr=__builtin_sqrtf\", which names no "
        "function that kernels call");
  check(&Language::functions, "=", "=exp, sin=", "has \"sqrt=exp,\"");
  check(&Language::functions, "__builtin_sqrtf", "", "has \"sqrt=\"");
  check(&Language::functions, "sqrt", "* sqrt", "has \"*\"");
}

// A device that has no error functions of floats.
class BackendWithoutErf final : public CppBackend {
 public:
  BackendWithoutErf() : CppBackend(false, {DataType::kFloat}) {}
  bool SupportsOpcode(Opcode opcode, DataType type) const override {
    return opcode != Opcode::kErf || type != DataType::kFloat;
  }
};

TEST_CASE("an operation that the device lacks is refused, in each primitive") {
  BackendWithoutErf backend;
  minimal::Stream stream;
  HostScratch scratch;
  Launcher launcher = MakeLauncher(backend, stream, scratch);
  const auto erf = [](Value x) { return Erf(x); };
  const auto expression =
      MakeExpression({DataType::kFloat}, {DataType::kFloat}, erf);
  std::vector<float> x(4), y(4);
  const absl::Status status =
      launcher.MapFlat(*expression, {4, 0, {x.data(), y.data()}});
  CHECK(absl::IsUnimplemented(status));
  CHECK(absl::StrContains(status.message(), "erf of float"));
  Operand row = Operand::Dense(x.data(), DataType::kFloat, {4});
  Operand sum = Operand::Dense(y.data(), DataType::kFloat, {});
  Reduction reduction{ReduceKind::kSum, *expression, {}};
  CHECK(absl::IsUnimplemented(launcher.Reduce(reduction, {row}, {sum})));
  CHECK(backend.compilations == 0);
  // CheckBackend leaves out what a backend refuses.
  const auto supports = [&](Opcode opcode, DataType type) {
    return backend.SupportsOpcode(opcode, type);
  };
  const testing::Types types = {DataType::kFloat, DataType::kBool};
  CHECK(testing::PrimitiveSubjects(types, supports).size() + 1 ==
        testing::PrimitiveSubjects(types).size());
}

TEST_CASE("a launch with more arguments than the device takes is refused") {
  CppBackend backend(true, {});
  minimal::Stream stream;
  Target target = backend.Programs(stream).target();
  target.most_argument_bytes = 64;
  backend.Programs(stream).SetTarget(target);
  std::vector<float> x(2, 1);
  const absl::Status status = AddOne(backend, x);
  CHECK(absl::IsUnimplemented(status));
  CHECK(absl::StrContains(status.message(), "Target::most_argument_bytes"));
  target.most_argument_bytes = 80;
  backend.Programs(stream).SetTarget(target);
  CHECK(AddOne(backend, x) == absl::OkStatus());
}

TEST_CASE("products of matrices with 16 dimensions are refused") {
  CppBackend backend(true, {});
  minimal::Stream stream;
  HostScratch scratch;
  Launcher launcher = MakeLauncher(backend, stream, scratch);
  std::vector<float> x = {1, 2, 3, 4}, y(4);
  std::vector<int64_t> dims(kMaxViewRank, 1);
  dims[kMaxViewRank - 2] = dims[kMaxViewRank - 1] = 2;
  const auto matrix = Operand::Dense(x.data(), DataType::kFloat, dims);
  const auto result = Operand::Dense(y.data(), DataType::kFloat, dims);
  const auto negate = MakeExpression({DataType::kFloat}, {DataType::kFloat},
                                     [](Value value) { return -value; });
  // A launch has one dimension more.
  for (const absl::Status& status :
       {launcher.MatMul(matrix, matrix, result),
        launcher.MatMulMap(matrix, matrix, *negate, {}, {result})}) {
    CHECK(absl::IsUnimplemented(status));
    CHECK(absl::StrContains(status.message(), "reshape its tensors to fewer"));
  }
}

}  // namespace
}  // namespace tfplug::refused_launches_test
