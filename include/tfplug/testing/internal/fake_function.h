// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_FAKE_FUNCTION_H_
#define TFPLUG_TESTING_INTERNAL_FAKE_FUNCTION_H_

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tfplug/abi/functions.h"

// The fake's functions have their C names and C linkage. Plug-ins linked with
// the test call them through the table of functions; plug-ins loaded with
// dlopen look the names up, and find them only in a program that is compiled
// with TFPLUG_TESTING_EXPORT_C_API defined (in every file) and linked with
// -rdynamic.
#ifdef TFPLUG_TESTING_EXPORT_C_API
#define TFPLUG_FAKE_FUNCTION \
  extern "C" __attribute__((visibility("default"))) inline
#else
#define TFPLUG_FAKE_FUNCTION extern "C" inline
#endif

// Adds a function to the table `functions`, a capi::Functions.
#define TFPLUG_FAKE_INSTALL(name) functions.name = &name

#pragma GCC visibility push(hidden)

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

// Aborts where TensorFlow would abort because of a failed CHECK.
[[noreturn]] inline void AbortLikeTensorFlow(const char* function,
                                             const char* reason) {
  std::fprintf(stderr, "%s: TensorFlow would abort here: %s\n", function,
               reason);
  std::abort();
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_FAKE_FUNCTION_H_
