// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_FAKE_FUNCTION_H_
#define TFPLUG_TESTING_INTERNAL_FAKE_FUNCTION_H_

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tfplug/abi/functions.h"

// The fake's functions have their C names and C linkage: the same definition
// serves plug-ins linked with the test, through the table of functions, and
// plug-ins loaded with dlopen, which look the name up. The latter only find
// them in a program that is compiled with TFPLUG_TESTING_EXPORT_C_API defined
// (in every file) and linked with -rdynamic.
#ifdef TFPLUG_TESTING_EXPORT_C_API
#define TFPLUG_FAKE_FUNCTION \
  extern "C" __attribute__((visibility("default"))) inline
#else
#define TFPLUG_FAKE_FUNCTION \
  extern "C" __attribute__((visibility("hidden"))) inline
#endif

// Enters a function into `functions`, a capi::Functions.
#define TFPLUG_FAKE_INSTALL(name) functions.name = &name

namespace tfplug::testing {

// Counts the objects of class T, so that tests find leaks.
template <class T>
struct Counted {
  Counted() { ++live; }
  Counted(const Counted&) { ++live; }
  Counted& operator=(const Counted&) { return *this; }
  ~Counted() { --live; }

  static inline std::atomic<int64_t> live{0};
};

// Stands for a failed CHECK in TensorFlow, which aborts the process.
[[noreturn]] inline void AbortLikeTensorFlow(const char* function,
                                             const char* reason) {
  std::fprintf(stderr, "%s: TensorFlow would abort here: %s\n", function,
               reason);
  std::abort();
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTING_INTERNAL_FAKE_FUNCTION_H_
