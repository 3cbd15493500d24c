// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FUNCTIONS_BY_NAME_H_
#define TFPLUG_TESTING_FUNCTIONS_BY_NAME_H_

#include <cstddef>
#include <cstring>

#include "tfplug/abi/function_info.h"
#include "tfplug/base/internal/os.h"
#include "tfplug/base/internal/tensorflow.h"

// Include this header in one file of a program that exports the fake's functions
// (TFPLUG_TESTING_EXPORT_C_API, -rdynamic): libraries that look TensorFlow's
// functions up with dlsym, as tfplug's plug-ins do, then find those of the
// ScopedFakeTensorFlow that exists: those of its release, minus those that it
// excludes. Without one, they find what the program exports.
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

}  // namespace tfplug::testing

#pragma GCC visibility pop

// The loader binds the plug-in's calls to the definition of the program.
// NOLINTNEXTLINE(misc-definitions-in-headers)
extern "C" __attribute__((weak, visibility("default"))) void* dlsym(
    void* library, const char* name) noexcept {
  static const auto original = tfplug::internal::LibcDlsym();
  const bool is_fake = tfplug::internal::tensorflow.TF_SetStatus != nullptr;
  if (library == tfplug::internal::kGlobalScope && is_fake &&
      std::strncmp(name, "TF_", 3) == 0) {
    const size_t i = tfplug::testing::FunctionIndex(name);
    if (i < tfplug::capi::kFunctionCount) {
      void* function = nullptr;
      std::memcpy(&function,
                  reinterpret_cast<const char*>(&tfplug::internal::tensorflow) +
                      i * sizeof(function),
                  sizeof(function));
      return function;
    }
  }
  return original(library, name);
}

#endif  // TFPLUG_TESTING_FUNCTIONS_BY_NAME_H_
