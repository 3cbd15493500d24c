// SPDX-License-Identifier: Apache-2.0
#include "tfplug/compiled/languages.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "fixture.h"
#include "minimal_device.h"
#include "tfplug/compiled/compiled.h"
#include "tfplug/testing/backend_conformance.h"

// Sources in each language, read by the compilers that this machine has: a
// sample, or, with LANGUAGE_SOURCES=FOLDER, all of them, which stay in FOLDER.
namespace tfplug::languages_test {
namespace {

// A compiler, `{}` being the source's path, and a command that fails if the
// machine lacks it. A slow one reads few of the sample.
struct Judge {
  const char *title, *probe, *command;
  bool is_slow = false;
};

struct Case {
  const char* name;
  const Language& (*language)();
  const char* extension;
  bool allows_cpu, has_doubles;
  std::vector<Judge> judges;
};

std::vector<Case> Cases() {
  const char* const c = "cc -std=c99 -pedantic -Wall -Werror -Wno-unused -c";
  static const std::string c64 = std::string(c) + " -o {}.o {}",
                           c32 = std::string(c) + " -m32 -o {}.o {}";
  return {
      {"opencl_c",
       OpenClC,
       ".cl",
       true,
       true,
       {{"clang", "clang --version",
         "clang -x cl -cl-std=CL1.2 -Xclang -finclude-default-header "
         "-Dcl_khr_fp64 -fsyntax-only {}"}}},
      {"cuda",
       Cuda,
       ".cu",
       false,
       true,  // for CUDA, see tools/nvrtc-sweep
       {{"hipcc", "hipcc --version",
         "HIP_PLATFORM=amd hipcc -x hip -include hip/hip_runtime.h "
         "--offload-arch=gfx906 --offload-arch=gfx1030 --cuda-device-only "
         "-fsyntax-only {}",
         true}}},
      {"cpp",
       Cpp,
       ".cc",
       true,
       true,
       {{"g++", "g++ --version", "g++ -std=c++17 -w -fsyntax-only {}"}}},
      {"plain_c",
       PlainC,
       ".c",
       true,
       true,
       {{"cc", "cc --version", c64.c_str()},
        {"cc -m32", "echo 'long x;' | cc -m32 -x c -c -o /dev/null -",
         c32.c_str()}}},
      {"glsl",
       Glsl,
       ".comp",
       false,
       true,
       {{"glslang", "glslangValidator --version && spirv-val --version",
         "glslangValidator --target-env vulkan1.2 -o {}.spv {} && "
         "spirv-val --target-env vulkan1.2 {}.spv"},
        // Metal has no doubles.
        {"spirv-cross, to Metal", "command -v spirv-cross",
         "grep -v '^#\\|^ARRAY' {} | grep -qw 'f64\\|array_f64' || "
         "spirv-cross --msl --msl-version 20400 {}.spv"}}},
      {"metal",
       Metal,
       ".metal",
       false,
       false,
       {{"clang++, with kMetalLibrary", "clang++ --version",
         "clang++ -x c++ -std=c++14 -w -fsyntax-only -I $(dirname {}) {}"}}},
  };
}

// Metal's words and functions in clang's C++, with address spaces that may not be
// mixed: no compiler of Metal runs here.
constexpr char kMetalLibrary[] = R"code(
#define kernel
#define device __attribute__((address_space(1)))
#define constant const __attribute__((address_space(2)))
#define threadgroup static __attribute__((address_space(3)))
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned uint;
typedef unsigned long ulong;
namespace metal {
template <class T, class U> T as_type(U x) { return __builtin_bit_cast(T, x); }
enum class mem_flags { mem_threadgroup };
void threadgroup_barrier(mem_flags);
float fabs(float);
float floor(float);
float ceil(float);
float rint(float);
float fma(float, float, float);
namespace precise {
float sqrt(float);
float rsqrt(float);
}
}
)code";

bool Succeeds(std::string command, const std::string& path = "") {
  for (size_t at; (at = command.find("{}")) != command.npos;) {
    command.replace(at, 2, path);
  }
  return std::system(("(" + command + ") > /dev/null 2>&1").c_str()) == 0;
}

struct NoProgram : Program {};

// Collects sources, and launches nothing.
class SourceBackend : public CompiledBackend<minimal::Stream, NoProgram> {
 public:
  explicit SourceBackend(Target target) : programs_(std::move(target)) {}

  ProgramCache& Programs(minimal::Stream&) override { return programs_; }
  absl::StatusOr<std::string> Compile(minimal::Stream&,
                                      const std::string& source) override {
    sources.push_back(source);
    return std::string("-");
  }
  absl::StatusOr<std::unique_ptr<NoProgram>> Load(minimal::Stream&,
                                                  const std::string&,
                                                  const char*) override {
    return std::make_unique<NoProgram>();
  }
  absl::Status Launch(minimal::Stream&, NoProgram&, const Grid&,
                      const KernelArguments&) override {
    return absl::OkStatus();
  }

  std::vector<std::string> sources;

 private:
  ProgramCache programs_;
};

// Returns the sources of each step'th subject of the conformance check.
std::vector<std::string> Sources(const Case& one, bool is_cpu, size_t step) {
  Target target;
  target.language = &one.language();
  target.is_cpu = is_cpu;
  target.most_groups = 65535;
  SourceBackend backend(target);
  Fixture<minimal::Platform> fixture;
  testing::Types types;
  for (int i = 1; i <= static_cast<int>(DataType::kUint64); ++i) {
    const auto type = static_cast<DataType>(i);
    if (ComputeType(type) != DataType(0) &&
        (one.has_doubles || type != DataType::kDouble)) {
      types.push_back(type);
    }
  }
  auto& stream = *static_cast<minimal::Stream*>(
      static_cast<void*>(fixture.device().compute().handle()));
  testing::PrimitiveRun run(
      fixture.device(),
      [&](Scratch& scratch) { return MakeLauncher(backend, stream, scratch); },
      true);
  const auto subjects = testing::PrimitiveSubjects(types);
  for (size_t i = 0; i < subjects.size(); i += step) {
    testing::Random random(static_cast<testing::Random::result_type>(i));
    testing::CaseMaker maker(random, testing::kRandom, true, types);
    run.Check(subjects[i](maker));  // of course it differs
  }
  return backend.sources;
}

TEST_CASE("each language's compilers accept generated sources") {
  setenv("TFPLUG_CACHE_DIR", "", 1);
  const char* const kept = std::getenv("LANGUAGE_SOURCES");
  std::string folder =
      kept != nullptr
          ? kept
          : std::filesystem::temp_directory_path() / "languages_XXXXXX";
  if (kept == nullptr) REQUIRE(mkdtemp(&folder[0]) != nullptr);
  std::ofstream(folder + "/metal_stdlib") << kMetalLibrary;
  for (const Case& one : Cases()) {
    std::vector<std::string> paths;
    for (const bool is_cpu : {false, true}) {
      if (is_cpu && !one.allows_cpu) continue;
      const auto sources = Sources(one, is_cpu, kept != nullptr ? 1 : 23);
      REQUIRE(sources.size() > 10);
      for (const std::string& source : sources) {
        paths.push_back(folder + "/" + one.name + "_" +
                        std::to_string(paths.size()) + one.extension);
        std::ofstream(paths.back()) << source;
        CHECK(source.find('$') == source.npos);
        CHECK(source.find('@') == source.npos);
      }
    }
    for (const Judge& judge : one.judges) {
      if (!Succeeds(judge.probe)) {
        MESSAGE("no compiler for " << std::string(judge.title));
        continue;
      }
      const size_t step = judge.is_slow && kept == nullptr ? 8 : 1;
      for (size_t i = 0; i < paths.size(); i += step) {
        INFO(std::string(judge.title), " ", paths[i]);
        CHECK(Succeeds(judge.command, paths[i]));
      }
    }
  }
  unsetenv("TFPLUG_CACHE_DIR");
  if (kept == nullptr) std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tfplug::languages_test
