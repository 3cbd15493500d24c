// SPDX-License-Identifier: Apache-2.0
#include "tfplug/compiled/compiled.h"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fixture.h"
#include "minimal_device.h"
#include "tfplug/compiled/languages.h"
#include "tfplug/primitives/reference_backend.h"
#include "tfplug/testing/backend_conformance.h"

// The generator of kernels, with the system's C++ compiler as the device's.
namespace tfplug::compiled_test {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A temporary folder.
struct Folder {
  Folder() {
    const char* const tmp = std::getenv("TMPDIR");
    path = std::string(tmp != nullptr ? tmp : "/tmp") + "/compiled_test_XXXXXX";
    REQUIRE(mkdtemp(&path[0]) != nullptr);
  }
  Folder(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }

  std::string path;
};

struct CppProgram : Program {
  ~CppProgram() override { dlclose(library); }

  void* library = nullptr;
  void (*function)(const unsigned*, void**) = nullptr;
};

// Compiles C++, or plain C without a library.
class CppBackend : public CompiledBackend<minimal::Stream, CppProgram> {
 public:
  CppBackend(bool is_cpu, std::vector<DataType> types, const char* name = "",
             uint32_t most_groups = UINT32_MAX,
             const Language& language = Cpp())
      : types_(std::move(types)), is_c_(&language == &PlainC()) {
    Target target;
    target.name = name;
    target.language = &language;
    target.is_cpu = is_cpu;
    target.group_size = 64;
    target.most_groups = most_groups;
    programs_.SetTarget(target);
  }

  ProgramCache& Programs(minimal::Stream&) override { return programs_; }

  absl::StatusOr<std::string> Compile(minimal::Stream&,
                                      const std::string& source) override {
    ++compilations;
    if (fails) return absl::InternalError("line 1: no");
    const Folder folder;
    const std::string base = folder.path + "/kernel";
    std::ofstream(base + (is_c_ ? ".c" : ".cc")) << source;
    const char* const compiler = std::getenv("CXX");
    const std::string command =
        (is_c_ ? "cc -std=c99 -fno-builtin -nostdlib "
               : std::string(compiler != nullptr ? compiler : "c++") +
                     " -std=c++17 ") +
        "-O1 -ffp-contract=off -shared -fPIC -w -o " + base + ".so " + base +
        (is_c_ ? ".c -lc -Wl,--no-undefined" : ".cc") + " 2> " + base + ".log";
    const int code = std::system(command.c_str());
    const std::string log = ReadFile(base + ".log");
    std::string binary = ReadFile(base + ".so");
    if (code != 0) return absl::InternalError(log);
    return binary;
  }

  absl::StatusOr<std::unique_ptr<CppProgram>> Load(minimal::Stream&,
                                                   const std::string& binary,
                                                   const char* entry) override {
    const Folder folder;
    const std::string path = folder.path + "/kernel.so";
    std::ofstream(path, std::ios::binary) << binary;
    auto program = std::make_unique<CppProgram>();
    program->library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (program->library == nullptr) return absl::InternalError(dlerror());
    program->function = reinterpret_cast<decltype(program->function)>(
        dlsym(program->library, entry));
    return program;
  }

  absl::Status Launch(minimal::Stream&, CppProgram& program, const Grid& grid,
                      const KernelArguments& arguments) override {
    ++launches;
    std::vector<void*> list;
    for (void* const& pointer : arguments.pointers) {
      list.push_back(const_cast<void**>(&pointer));
    }
    list.push_back(arguments.parameters);
    for (unsigned group = 0; group < grid.groups * grid.rows; ++group) {
      program.function(&group, list.data());
    }
    return absl::OkStatus();
  }

  bool Supports(DataType type) const override {
    return types_.empty() ||
           std::find(types_.begin(), types_.end(), type) != types_.end();
  }

  bool fails = false;
  int compilations = 0;
  std::atomic<int> launches{0};

 private:
  const std::vector<DataType> types_;
  const bool is_c_;
  ProgramCache programs_;
};

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

// Adds 1 to floats, with Map or MapFlat.
absl::Status AddOne(CppBackend& backend, std::vector<float>& x,
                    bool is_flat = false) {
  minimal::Stream stream;
  HostScratch scratch;
  const auto expression = MakeExpression({DataType::kFloat}, {DataType::kFloat},
                                         [](Value value) { return value + 1; });
  Launcher launcher = MakeLauncher(backend, stream, scratch);
  const auto size = static_cast<int64_t>(x.size());
  if (is_flat) {
    return launcher.MapFlat(*expression, {size, 0, {x.data(), x.data()}});
  }
  const auto view = Operand::Dense(x.data(), DataType::kFloat, {size});
  return launcher.Map(*expression, {view}, {view});
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

TEST_CASE("a source that does not compile is kept for the report") {
  CppBackend backend(true, {});
  std::vector<float> x(2, 1);
  backend.fails = true;
  const absl::Status status = AddOne(backend, x);
  const std::string text(status.message());
  CHECK(text.find("\nline 1: no") != std::string::npos);
  const size_t begin = text.find(" is in ") + 7;
  const std::string path = text.substr(begin, text.find(". If ") - begin);
  CHECK(ReadFile(path).find("x1[e] = v2;") != std::string::npos);
  CHECK(AddOne(backend, x).message() == text);  // in the same file
  std::filesystem::remove(path);
  CHECK(AddOne(backend, x).message() != text);  // which is gone
  backend.fails = false;
  CHECK(AddOne(backend, x) == absl::OkStatus());
}

// Returns how many programs a new device of this name compiles.
int CompilationsOf(const char* name) {
  CppBackend backend(true, {}, name);
  std::vector<float> x(2, 1);
  CHECK(AddOne(backend, x) == absl::OkStatus());
  CHECK(x[1] == 2);
  return backend.compilations;
}

TEST_CASE("programs are kept on disk, for devices of the same name") {
  const Folder folder;
  const std::string cache = folder.path + "/a/b";
  setenv("TFPLUG_CACHE_DIR", cache.c_str(), 1);
  CHECK(CompilationsOf("driver 1") == 1);
  CHECK(CompilationsOf("driver 1") == 0);
  CHECK(CompilationsOf("driver 2") == 1);
  CHECK(CompilationsOf("") == 1);

  // Files that were cut off or changed are replaced.
  for (const bool is_cut : {true, false}) {
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(cache)) {
      ++files;
      const auto size = std::filesystem::file_size(entry);
      if (is_cut) {
        std::filesystem::resize_file(entry, size - 1);
      } else {
        std::fstream file(entry.path(), std::ios::in | std::ios::out);
        file.seekp(static_cast<std::streamoff>(size - 100));
        file << "damaged";
      }
    }
    CHECK(files == 2);
    CHECK(CompilationsOf("driver 1") == 1);
    CHECK(CompilationsOf("driver 1") == 0);
    CHECK(CompilationsOf("driver 2") == 1);
  }

  // No folder can be created in a file.
  setenv("TFPLUG_CACHE_DIR", "/dev/null/cache", 1);
  CHECK(CompilationsOf("driver 1") == 1);
  CHECK(CompilationsOf("driver 1") == 1);
  setenv("TFPLUG_CACHE_DIR", "", 1);
  CHECK(CompilationsOf("driver 1") == 1);
  unsetenv("TFPLUG_CACHE_DIR");
}

}  // namespace
}  // namespace tfplug::compiled_test
