// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_LOADED_LIBRARIES_H_
#define TFPLUG_BASE_INTERNAL_LOADED_LIBRARIES_H_

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// A shared library of this process and the address of a function in it.
struct LoadedLibrary {
  std::string path;
  void* symbol;
};

// Remembers which libraries of the process it has found. Not thread-safe.
class LibraryCursor {
 public:
  // Returns the libraries that define `symbol` and that were loaded since the
  // last call, without the library that contains this code.
  std::vector<LoadedLibrary> FindNew(const char* symbol) {
    std::vector<LoadedLibrary> found;
    const unsigned long long adds = CountLoads();
    if (adds == adds_) return found;
    adds_ = adds;
    // This is not done within dl_iterate_phdr, which holds the loader's lock.
    for (const Object& object : ListObjects()) {
      if (std::find(seen_.begin(), seen_.end(), object) != seen_.end()) {
        continue;
      }
      seen_.push_back(object);
      void* const library =
          dlopen(object.path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
      if (library == nullptr) continue;
      void* const address = dlsym(library, symbol);
      // dlsym also searches the libraries that this one needs.
      if (address != nullptr && BaseOf(address) == object.base &&
          object.base != BaseOf(&kHere)) {
        found.push_back({object.path, address});
      }
      dlclose(library);
    }
    return found;
  }

 private:
  struct Object {
    std::string path;
    const void* base;
    friend bool operator==(const Object& a, const Object& b) {
      return a.base == b.base && a.path == b.path;
    }
  };

  // An address in this library.
  static constexpr char kHere = 0;

  // Returns where the library with this address begins in memory.
  static const void* BaseOf(const void* address) {
    Dl_info info = {};
    return dladdr(address, &info) == 0 ? nullptr : info.dli_fbase;
  }

  static unsigned long long CountLoads() {
    unsigned long long adds = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* to) {
          *static_cast<unsigned long long*>(to) = info->dlpi_adds;
          return 1;
        },
        &adds);
    return adds;
  }

  static std::vector<Object> ListObjects() {
    std::vector<Object> objects;
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* to) {
          // The program itself has no name.
          if (info->dlpi_name != nullptr && *info->dlpi_name != '\0') {
            static_cast<std::vector<Object>*>(to)->push_back(
                {info->dlpi_name,
                 reinterpret_cast<const void*>(info->dlpi_addr)});
          }
          return 0;
        },
        &objects);
    return objects;
  }

  unsigned long long adds_ = 0;
  std::vector<Object> seen_;
};

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_LOADED_LIBRARIES_H_
