// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_LOAD_DRIVER_H_
#define TFPLUG_BASE_LOAD_DRIVER_H_

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

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
    return reinterpret_cast<Function*>(dlsym(library_, symbol));
  }

  // Returns the path of the library that was loaded.
  const std::string& path() const { return path_; }

 private:
  friend absl::StatusOr<Driver> LoadDriver(
      const std::vector<std::string>& names, const DriverOptions& options);

  Driver(void* library, std::string path, std::string remedy)
      : library_(library), path_(std::move(path)), remedy_(std::move(remedy)) {}

  absl::Status MissingSymbol(const char* symbol) const {
    return absl::NotFoundError("the driver " + path_ + " has no function " +
                               symbol + ": " + remedy_);
  }

  void* library_;
  std::string path_;
  std::string remedy_;
};

namespace internal {

// Returns whether the runtime of a sanitizer is in the process. It replaces
// functions such as malloc, and aborts if a library is loaded with
// RTLD_DEEPBIND, which would bypass them.
inline bool HasSanitizerRuntime() {
  for (const char* symbol : {"__asan_init", "__tsan_init", "__msan_init"}) {
    if (dlsym(RTLD_DEFAULT, symbol) != nullptr) return true;
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
  int flags = RTLD_NOW | RTLD_LOCAL;
#if defined(RTLD_DEEPBIND)
  if (options.deep_bind && !internal::HasSanitizerRuntime()) {
    flags |= RTLD_DEEPBIND;
  }
#endif
  std::string message = "cannot load the driver: ";
  for (const std::string& name : names) {
    void* const library = dlopen(name.c_str(), flags);
    if (library != nullptr) {
      link_map* map = nullptr;
      const bool has_path = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0;
      return Driver(library, has_path ? map->l_name : name, options.remedy);
    }
    // dlerror() names the library, or the dependency that is missing.
    const char* const reason = dlerror();
    message += (reason != nullptr ? reason : name) + std::string("; ");
  }
  return absl::NotFoundError(message + options.remedy);
}

// Loads each library that a line of a file in a folder names, such as the
// vendors' drivers in /etc/OpenCL/vendors. A vendor-neutral loader would load
// them later and bind their symbols to those of TensorFlow; a library that is
// loaded keeps its bindings. Ignores libraries that cannot be loaded. The
// environment variable replaces the folder.
inline void LoadDriversListedIn(const char* variable, const char* folder) {
  const char* const other = std::getenv(variable);
  if (other != nullptr) folder = other;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::ifstream file(entry.path());
    for (std::string library; std::getline(file, library);) {
      if (!library.empty()) LoadDriver({library}).status().IgnoreError();
    }
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_LOAD_DRIVER_H_
