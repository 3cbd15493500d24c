// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_LOADED_LIBRARIES_H_
#define TFPLUG_BASE_INTERNAL_LOADED_LIBRARIES_H_

#include <algorithm>
#include <string>
#include <vector>

#include "tfplug/base/internal/os.h"

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
    const unsigned long long adds = CountLibraryLoads();
    if (adds == adds_) return found;
    adds_ = adds;
    // This is not done within ForEachLibrary, which holds the loader's lock.
    for (const Object& object : ListObjects()) {
      if (std::find(seen_.begin(), seen_.end(), object) != seen_.end()) {
        continue;
      }
      seen_.push_back(object);
      const LibraryHandle library = FindLibrary(object.path.c_str());
      if (library == nullptr) continue;
      void* const address = FindIn(library, symbol);
      // FindIn also searches the libraries that this one needs.
      if (address != nullptr && LibraryBase(address) == object.base &&
          object.base != LibraryBase(&kHere)) {
        found.push_back({object.path, address});
      }
      CloseLibrary(library);
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

  static std::vector<Object> ListObjects() {
    std::vector<Object> objects;
    ForEachLibrary([&](const char* path, const void* base) {
      objects.push_back({path, base});
    });
    return objects;
  }

  unsigned long long adds_ = 0;
  std::vector<Object> seen_;
};

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_LOADED_LIBRARIES_H_
