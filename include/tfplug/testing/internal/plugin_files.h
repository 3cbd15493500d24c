// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_PLUGIN_FILES_H_
#define TFPLUG_TESTING_INTERNAL_PLUGIN_FILES_H_

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/os.h"
#include "tfplug/testing/graph_host.h"
#include "tfplug/testing/host.h"
#include "tfplug/testing/profiler_host.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// Returns whether TensorFlow takes a file in a folder of plug-ins for a library:
// "x.so" and "x.so.1" (load_library._is_shared_object).
inline bool IsSharedObject(absl::string_view file) {
  if (absl::EndsWith(file, ".so")) return true;
  const size_t version = file.rfind(".so.");
  return version != file.npos && version + 4 < file.size() &&
         absl::ascii_isdigit(static_cast<unsigned char>(file[version + 4]));
}

// Returns the libraries that tf.load_pluggable_device_library loads for a path:
// those in a folder, or the file itself. TensorFlow's order in a folder is that of
// the file system; here it is that of the names. NOT_FOUND if there is no such path.
inline absl::StatusOr<std::vector<std::string>> PluginFiles(
    const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return absl::NotFoundError(
        absl::StrCat("there is no file or folder ", path));
  }
  if (!std::filesystem::is_directory(path, error)) {
    return std::vector<std::string>{path};
  }
  std::vector<std::string> files;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator file(path, error);
       !error && file != end; file.increment(error)) {
    if (IsSharedObject(file->path().filename().string())) {
      files.push_back(file->path().string());
    }
  }
  if (error) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot list ", path, ": ", error.message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The entry points of a plug-in; null if it lacks one.
struct EntryPoints {
  Host::InitPlugin init_plugin = nullptr;
  void (*init_kernel)() = nullptr;
  GraphHost::InitGraph init_graph = nullptr;
  ProfilerHost::InitProfiler init_profiler = nullptr;
};

// Loads a library and looks its entry points up. It is never unloaded.
inline absl::StatusOr<EntryPoints> FindEntryPoints(const std::string& path) {
  char* const resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no file ", path));
  }
  const std::string real = resolved;
  std::free(resolved);
  const auto library =
      internal::OpenLibrary(real.c_str(), /*own_symbols_first=*/false);
  if (library == nullptr) return absl::NotFoundError(internal::LoaderError());
  const auto find = [&](auto& to, const char* name) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(
        internal::FindIn(library, name));
  };
  EntryPoints found;
  find(found.init_plugin, "SE_InitPlugin");
  find(found.init_kernel, "TF_InitKernel");
  find(found.init_graph, "TF_InitGraph");
  find(found.init_profiler, "TF_InitProfiler");
  return found;
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_PLUGIN_FILES_H_
