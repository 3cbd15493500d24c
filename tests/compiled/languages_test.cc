// SPDX-License-Identifier: Apache-2.0
#include "tfplug/compiled/languages.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
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

TEST_CASE("a kernel in GLSL has the words of GLSL") {
  std::string source;
  const auto keep = [&](const std::string& text) { source = text; };
  Target target;
  target.language = &Glsl();
  language_sources::SourceBackend<minimal::Stream, decltype(keep)> backend(
      target, keep);
  minimal::Stream stream;
  HostScratch scratch;
  Reduction sum;
  sum.map = *MakeExpression({DataType::kDouble}, {DataType::kDouble},
                            [](Value x) { return Rint(x) + 1.5; });
  sum.finish = *MakeExpression({DataType::kDouble}, {DataType::kDouble},
                               [](Value total) { return total; });
  double x[200] = {}, y = 0;
  REQUIRE(MakeLauncher(backend, stream, scratch)
              .Reduce(sum, {Operand::Dense(x, DataType::kDouble, {200})},
                      {Operand::Dense(&y, DataType::kDouble, {})}) ==
          absl::OkStatus());
  CHECK(absl::StartsWith(
      source, "#version 460\n#define GROUP 256\n#extension GL_EXT_buffer_"));
  for (const char* words :
       {"\n#ifdef IS_WIDE\n", "array_f64 x0 = array_f64(p.pointers[0]);\n",
        " = ELEMENT(x0, f64, ", "\nELEMENT(x1, f64, ",
        "\nshared f64 parts[GROUP];\n", "roundEven(v0)", "1.5lf)",
        "\nvoid main() {\n"}) {
    CHECK_MESSAGE(absl::StrContains(source, words), words, source);
  }
}

TEST_CASE("a narrow value is converted by what the prelude then has") {
  using compiled_internal::ConvertText;
  using compiled_internal::WidenText;
  Target target;
  target.language = &Cpp();
  const auto check = [&](DataType from, DataType to, const char* text,
                         const char* function) {
    compiled_internal::SourceParts parts(target);
    const std::string made = ComputeType(to) == to
                                 ? WidenText(from, "x", parts)
                                 : ConvertText(from, to, "x", parts);
    CHECK(made == text);
    CHECK(absl::StrContains(parts.Prelude(), function));
  };
  check(DataType::kHalf, DataType::kFloat, "f32_of_f16(u32(x))", "f32_of_f16(");
  check(DataType::kFloat, DataType::kHalf, "f16_of_f32(f32(x))", "f16_of_f32(");
  check(DataType::kBfloat16, DataType::kFloat, "f32_of_bf16(u32(x))",
        "f32_of_bf16(");
  check(DataType::kFloat, DataType::kBfloat16, "bf16_of_f32(f32(x))",
        "bf16_of_f32(");
  check(DataType::kInt8, DataType::kInt32, "i32(x)", "");
  check(DataType::kUint32, DataType::kUint32, "x", "");
  check(DataType::kInt32, DataType::kInt8, "i8(x)", "");
  check(DataType::kFloat, DataType::kInt8, "i8(i32_of_f32(x))", "i32_of_f32(");
  check(DataType::kDouble, DataType::kUint16, "u16(i32_of_f64(x))",
        "i32_of_f64(");
}

}  // namespace
}  // namespace tfplug::languages_test
