// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_LOAD_DRIVER_H_
#define TFPLUG_BASE_LOAD_DRIVER_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/internal/os.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

struct DriverOptions {
  // Tells users how to install the driver, such as "install
  // ocl-icd-libopencl1". Every error message ends with this text.
  std::string remedy = "install the device's driver or a newer version of it";
  // Whether to load the library with RTLD_DEEPBIND; see LoadDriver.
  bool deep_bind = true;
};

// A driver's shared library. It stays loaded until the process exits, because
// drivers start threads and register exit handlers. Copies refer to the same
// library.
class Driver {
 public:
  // Looks up `symbol` in the library and stores its address in `*function`, a
  // pointer to a function:
  //
  //   decltype(&clGetPlatformIDs) get_platform_ids;
  //   status.Update(driver.Get("clGetPlatformIDs", &get_platform_ids));
  //
  // If the library lacks the symbol, returns NOT_FOUND and sets `*function` to
  // null.
  template <class Function>
  absl::Status Get(const char* symbol, Function** function) const {
    *function = Find<Function>(symbol);
    return *function != nullptr ? absl::OkStatus() : MissingSymbol(symbol);
  }

  // Returns the function, or null if the library lacks it. Use it for functions
  // that only some versions of the driver have.
  template <class Function>
  Function* Find(const char* symbol) const {
    static_assert(std::is_function_v<Function>,
                  "tfplug: a Driver looks up functions: declare a pointer to a "
                  "function, such as decltype(&clGetPlatformIDs)");
    return reinterpret_cast<Function*>(internal::FindIn(library_, symbol));
  }

  // Returns the path of the library that was loaded.
  const std::string& path() const { return path_; }

 private:
  friend absl::StatusOr<Driver> LoadDriver(
      const std::vector<std::string>& names, const DriverOptions& options);

  Driver(internal::LibraryHandle library, std::string path, std::string remedy)
      : library_(library), path_(std::move(path)), remedy_(std::move(remedy)) {}

  absl::Status MissingSymbol(const char* symbol) const {
    return absl::NotFoundError("the driver " + path_ + " has no function " +
                               symbol + ": " + remedy_);
  }

  internal::LibraryHandle library_;
  std::string path_;
  std::string remedy_;
};

namespace internal {

// Returns whether the runtime of a sanitizer is in the process. It replaces
// functions such as malloc, and aborts if a library is loaded with
// RTLD_DEEPBIND, which would bypass them.
inline bool HasSanitizerRuntime() {
  for (const char* symbol : {"__asan_init", "__tsan_init", "__msan_init"}) {
    if (FindGlobal(symbol) != nullptr) return true;
  }
  return false;
}

}  // namespace internal

// Loads the first library in `names` that can be loaded. A name without a slash
// is searched for like the libraries with which a program is linked.
// Call it in Platform::Init: if Init fails, TensorFlow runs without the device,
// and the log contains the error.
//
// The library binds to its own symbols and those of its dependencies first
// (RTLD_DEEPBIND, where libc has it and no sanitizer is in use). Otherwise it
// would bind to symbols of TensorFlow, which exports LLVM, protobuf and Abseil,
// and a driver that contains another version of one of them would crash. A
// library that is already loaded keeps its existing bindings.
//
// Returns NOT_FOUND with the loader's reason for each name if none can be
// loaded.
inline absl::StatusOr<Driver> LoadDriver(const std::vector<std::string>& names,
                                         const DriverOptions& options = {}) {
  const bool deep_bind = options.deep_bind && !internal::HasSanitizerRuntime();
  std::string message = "cannot load the driver: ";
  for (const std::string& name : names) {
    if (const auto library = internal::OpenLibrary(name.c_str(), deep_bind)) {
      return Driver(library, internal::PathOf(library, name), options.remedy);
    }
    // The reason names the library, or the dependency that is missing.
    message += internal::LoaderError() + std::string("; ");
  }
  return absl::NotFoundError(message + options.remedy);
}

namespace internal {

// Returns the libraries that a file names: each line is one, or, in a manifest
// in JSON, the value of "library_path".
inline std::vector<std::string> LibrariesIn(const std::string& file) {
  std::ifstream stream(file);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  std::vector<std::string> names;
  if (text.find_first_not_of(" \t\r\n") == text.find('{')) {
    size_t begin = text.find("\"library_path\"");
    if (begin != std::string::npos) begin = text.find(':', begin);
    if (begin != std::string::npos) begin = text.find('"', begin);
    if (begin == std::string::npos) return names;
    const size_t end = text.find('"', begin + 1);
    if (end == std::string::npos) return names;
    std::filesystem::path name = text.substr(begin + 1, end - begin - 1);
    // A path is relative to the manifest.
    if (name.has_parent_path()) {
      name = std::filesystem::path(file).parent_path() / name;
    }
    names.push_back(name.string());
    return names;
  }
  std::istringstream lines(text);
  for (std::string name; std::getline(lines, name);) names.push_back(name);
  return names;
}

}  // namespace internal

// Loads each library that a file in one of the folders names: in a line of its
// own, as the vendors' drivers in /etc/OpenCL/vendors, or in a manifest in JSON,
// as in /usr/share/vulkan/icd.d. A vendor-neutral loader would load them later
// and bind their symbols to those of TensorFlow; a library that is loaded keeps
// its bindings. Ignores libraries that cannot be loaded. The environment
// variable, a list of files and folders with colons between them, replaces the
// folders.
inline void LoadDriversListedIn(const char* variable,
                                const std::vector<std::string>& folders) {
  std::vector<std::string> places = folders;
  if (const char* const others = std::getenv(variable); others != nullptr) {
    places.clear();
    std::istringstream stream(others);
    for (std::string place; std::getline(stream, place, ':');) {
      places.push_back(place);
    }
  }
  std::vector<std::string> files;
  for (const std::string& place : places) {
    std::error_code error;
    if (!std::filesystem::is_directory(place, error)) files.push_back(place);
    for (const auto& file : std::filesystem::directory_iterator(place, error)) {
      files.push_back(file.path().string());
    }
  }
  for (const std::string& file : files) {
    for (const std::string& name : internal::LibrariesIn(file)) {
      if (!name.empty()) LoadDriver({name}).status().IgnoreError();
    }
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_LOAD_DRIVER_H_
