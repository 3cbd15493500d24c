// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_CHECK_INTERPOSE_H_
#define TFPLUG_CHECK_INTERPOSE_H_

#include <dlfcn.h>
#include <stdlib.h>

#include <atomic>
#include <cstring>
#include <string>

// Functions of the C library that a plug-in's calls reach here first, because
// this program exports them.
namespace tfplug::check {

struct Calls {
  std::atomic<bool> is_watching{false};
  std::atomic<int> misfit_sizes{0};  // calls of aligned_alloc
  std::atomic<int> environment{0};   // calls of getenv
  const char* path = nullptr;        // of the plug-in
};
inline Calls& calls() {
  static auto* const calls = new Calls;
  return *calls;
}

// Returns whether `code` is in the plug-in itself, not in a library it uses.
inline bool IsPlugin(const void* code) {
  Dl_info info;
  return calls().path != nullptr && dladdr(code, &info) != 0 &&
         info.dli_fname != nullptr &&
         std::strcmp(info.dli_fname, calls().path) == 0;
}

}  // namespace tfplug::check

extern "C" __attribute__((visibility("default"))) void* aligned_alloc(
    size_t alignment, size_t size) {
  void* memory = nullptr;
  if (tfplug::check::calls().is_watching && alignment != 0 &&
      size % alignment != 0 &&
      tfplug::check::IsPlugin(__builtin_return_address(0))) {
    ++tfplug::check::calls().misfit_sizes;
  }
  const size_t smallest = sizeof(void*);
  return posix_memalign(&memory, alignment < smallest ? smallest : alignment,
                        size) == 0
             ? memory
             : nullptr;
}

extern "C" __attribute__((visibility("default"))) char* getenv(
    const char* name) noexcept {
  if (tfplug::check::calls().is_watching &&
      tfplug::check::IsPlugin(__builtin_return_address(0))) {
    ++tfplug::check::calls().environment;
  }
  const size_t length = std::strlen(name);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') {
      return *entry + length + 1;
    }
  }
  return nullptr;
}

#endif  // TFPLUG_CHECK_INTERPOSE_H_
