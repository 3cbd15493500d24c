// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_COMPILED_LANGUAGE_SOURCES_H_
#define TFPLUG_TESTS_COMPILED_LANGUAGE_SOURCES_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/compiled/compiled.h"
#include "tfplug/compiled/languages.h"

// Sources of kernels in each language, for the languages' compilers
// (tools/lib/language_sweep).
namespace language_sources {

// A language, as one kind of device uses it.
struct Case {
  const char* name;       // unique, with the kind of the device
  const char* extension;  // selects the compilers
  tfplug::Target target;
  bool has_doubles = true;
};

inline const std::vector<Case>& Cases() {
  static const std::vector<Case>* const cases = [] {
    auto* made = new std::vector<Case>;
    const auto add = [&](const char* name, const char* extension,
                         const tfplug::Language& language) -> Case& {
      Case one{name, extension, {}};
      one.target.language = &language;
      made->push_back(one);
      return made->back();
    };
    add("opencl_c", ".cl", tfplug::OpenClC());
    add("opencl_c_cpu", ".cl", tfplug::OpenClC()).target.is_cpu = true;
    add("cuda", ".cu", tfplug::Cuda());
    add("cpp", ".cc", tfplug::Cpp());
    add("cpp_cpu", ".cc", tfplug::Cpp()).target.is_cpu = true;
    add("plain_c", ".c", tfplug::PlainC());
    add("plain_c_cpu", ".c", tfplug::PlainC()).target.is_cpu = true;
    add("glsl", ".comp", tfplug::Glsl()).target.most_groups = 65535;
    add("glsl_cpu", ".comp", tfplug::Glsl()).target.is_cpu = true;
    add("metal", ".metal", tfplug::Metal()).has_doubles = false;
    return made;
  }();
  return *cases;
}

struct NoProgram : tfplug::Program {};

// Passes each source to `Sink`, a function of a std::string, and launches
// nothing.
template <class StreamT, class Sink>
class SourceBackend final : public tfplug::CompiledBackend<StreamT, NoProgram> {
 public:
  SourceBackend(tfplug::Target target, Sink sink)
      : programs_(std::move(target)), sink_(std::move(sink)) {}

  tfplug::ProgramCache& Programs(StreamT&) override { return programs_; }
  absl::StatusOr<std::string> Compile(StreamT&,
                                      const std::string& source) override {
    sink_(source);
    return std::string("-");
  }
  absl::StatusOr<std::unique_ptr<NoProgram>> Load(StreamT&, const std::string&,
                                                  const char*) override {
    return std::make_unique<NoProgram>();
  }
  absl::Status Launch(StreamT&, NoProgram&, const tfplug::Grid&,
                      const tfplug::KernelArguments&) override {
    return absl::OkStatus();
  }

 private:
  tfplug::ProgramCache programs_;
  Sink sink_;
};

}  // namespace language_sources

#endif  // TFPLUG_TESTS_COMPILED_LANGUAGE_SOURCES_H_
