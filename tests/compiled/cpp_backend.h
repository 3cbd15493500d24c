// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_COMPILED_CPP_BACKEND_H_
#define TFPLUG_TESTS_COMPILED_CPP_BACKEND_H_

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fixture.h"
#include "minimal_device.h"
#include "tfplug/compiled/compiled.h"
#include "tfplug/compiled/languages.h"
#include "tfplug/primitives/reference_backend.h"

// The generator of kernels, with the system's C++ compiler as the device's.
namespace tfplug::compiled_test {

inline std::string ReadFile(const std::string& path) {
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
    CHECK(grid.group_size == 1);  // one call runs a group
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

// Adds 1 to floats, with Map or MapFlat.
inline absl::Status AddOne(CppBackend& backend, std::vector<float>& x,
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

}  // namespace tfplug::compiled_test

#endif  // TFPLUG_TESTS_COMPILED_CPP_BACKEND_H_
