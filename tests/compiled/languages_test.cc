// SPDX-License-Identifier: Apache-2.0
#include "tfplug/compiled/languages.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiled/language_sources.h"
#include "fixture.h"
#include "minimal_device.h"
#include "tfplug/testing/backend_conformance.h"

// Sources in each language, read by the compilers that this machine has: a
// sample, or, with LANGUAGE_SOURCES=FOLDER, all of them, which stay in FOLDER.
namespace tfplug::languages_test {
namespace {

using language_sources::Case;

// Returns the sources of each step'th subject of the conformance check.
std::vector<std::string> Sources(const Case& one, size_t step) {
  std::vector<std::string> sources;
  const auto add = [&](const std::string& source) {
    sources.push_back(source);
  };
  language_sources::SourceBackend<minimal::Stream, decltype(add)> backend(
      one.target, add);
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
  return sources;
}

TEST_CASE("each language's compilers accept generated sources") {
  setenv("TFPLUG_CACHE_DIR", "", 1);
  const char* const kept = std::getenv("LANGUAGE_SOURCES");
  std::string folder =
      kept != nullptr
          ? kept
          : std::filesystem::temp_directory_path() / "languages_XXXXXX";
  if (kept == nullptr) REQUIRE(mkdtemp(&folder[0]) != nullptr);
  for (const Case& one : language_sources::Cases()) {
    const auto sources = Sources(one, kept != nullptr ? 1 : 23);
    REQUIRE(sources.size() > 10);
    size_t count = 0;
    for (const std::string& source : sources) {
      std::ofstream(
          absl::StrCat(folder, "/", one.name, "_", count++, one.extension))
          << source;
      CHECK(source.find('$') == source.npos);
      CHECK(source.find('@') == source.npos);
    }
  }
  unsetenv("TFPLUG_CACHE_DIR");
  // Prints what a compiler refuses, and which compilers are missing.
  const char* const judges = std::getenv("TFPLUG_LANGUAGE_JUDGES");
  if (judges == nullptr) {
    MESSAGE("no compiler reads the sources: TFPLUG_LANGUAGE_JUDGES is not set");
  } else {
    const int refused =
        std::system(absl::StrCat(judges, " --sources ", folder,
                                 kept != nullptr ? "" : " --few")
                        .c_str());
    REQUIRE_MESSAGE(refused == 0, "the sources stay in ", folder);
  }
  if (kept == nullptr) std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tfplug::languages_test
