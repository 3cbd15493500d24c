// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FUNCTIONS_BY_NAME_H_
#define TFPLUG_TESTING_FUNCTIONS_BY_NAME_H_

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tfplug/abi/function_info.h"
#include "tfplug/base/internal/os.h"
#include "tfplug/base/internal/tensorflow.h"

// Include this header in one file of a program that exports the fake's functions
// (TFPLUG_TESTING_EXPORT_C_API, -rdynamic): libraries that look TensorFlow's
// functions up with dlsym, as tfplug's plug-ins do, then find those of the
// ScopedFakeTensorFlow that exists: those of its release, minus those that it
// excludes. Without one, they find what the program exports. All other look-ups are
// the C library's, which has to be glibc.
#if !defined(__GLIBC__)
#error \
    "functions_by_name.h needs glibc: tfplug knows no other C library's dlsym"
#endif

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// Returns the index of one of TensorFlow's functions, or kFunctionCount.
inline size_t FunctionIndex(const char* name) {
  size_t i = 0;
  while (i < capi::kFunctionCount &&
         std::strcmp(capi::DescribeFunction(i).name, name) != 0) {
    ++i;
  }
  return i;
}

// Returns whether dlsym is to find a function of TensorFlow's in the fake.
TFPLUG_INTERNAL_UNSANITIZED inline bool IsFaked(void* library,
                                                const char* name) {
  return library == tfplug::internal::kGlobalScope &&
         tfplug::internal::tensorflow.TF_SetStatus != nullptr &&
         std::strncmp(name, "TF_", 3) == 0 &&
         FunctionIndex(name) < capi::kFunctionCount;
}
// Returns null for a function that the fake's release lacks.
inline void* FakeFunction(const char* name) {
  void* function = nullptr;
  std::memcpy(&function,
              reinterpret_cast<const char*>(&tfplug::internal::tensorflow) +
                  FunctionIndex(name) * sizeof(function),
              sizeof(function));
  return function;
}

TFPLUG_INTERNAL_UNSANITIZED inline auto FindLibcDlsym() {
  const auto found = tfplug::internal::LibcDlsym();
  if (found == nullptr) {
    std::fputs(
        "functions_by_name.h: the C library has no dlsym of a version that "
        "tfplug knows. Add its version to LibcDlsym in "
        "tfplug/base/internal/os.h\n",
        stderr);
    std::abort();
  }
  return found;
}

// The C library's dlsym looks at its return address to know which library asks.
// So the program's has to end in a jump to it, also without optimization.
#if defined(__clang__)
#define TFPLUG_TESTING_TAIL_CALLS
#define TFPLUG_TESTING_TAIL_CALL [[clang::musttail]]
#else
#define TFPLUG_TESTING_TAIL_CALLS optimize("O2"),
#define TFPLUG_TESTING_TAIL_CALL
#endif

}  // namespace tfplug::testing

#pragma GCC visibility pop

// The loader binds the plug-in's calls to the definition of the program. It has
// another name in C++, because clang++ makes no such jump in a noexcept function.
extern "C" TFPLUG_INTERNAL_UNSANITIZED
    __attribute__((TFPLUG_TESTING_TAIL_CALLS weak, visibility("default"))) void*
    TfplugTestingDlsym(void* library, const char* name) __asm__("dlsym");

// NOLINTNEXTLINE(misc-definitions-in-headers)
extern "C" void* TfplugTestingDlsym(void* library, const char* name) {
  // Not initialized under a guard, which a sanitizer might check.
  static decltype(tfplug::testing::FindLibcDlsym()) found = nullptr;
  auto original = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (original == nullptr) {
    original = tfplug::testing::FindLibcDlsym();
    __atomic_store_n(&found, original, __ATOMIC_RELAXED);
  }
  if (tfplug::testing::IsFaked(library, name)) {
    return tfplug::testing::FakeFunction(name);
  }
  TFPLUG_TESTING_TAIL_CALL return original(library, name);
}

#undef TFPLUG_TESTING_TAIL_CALL
#undef TFPLUG_TESTING_TAIL_CALLS

#endif  // TFPLUG_TESTING_FUNCTIONS_BY_NAME_H_
