// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "compiled/cpp_backend.h"

// Programs and sources on disk.
namespace tfplug::kept_programs_test {
namespace {

using compiled_test::AddOne;
using compiled_test::CppBackend;
using compiled_test::Folder;
using compiled_test::ReadFile;

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
}  // namespace tfplug::kept_programs_test
