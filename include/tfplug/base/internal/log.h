// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_LOG_H_
#define TFPLUG_BASE_INTERNAL_LOG_H_

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "tfplug/base/internal/tensorflow.h"

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// Writes a line to TensorFlow's log where TF_Log exists (until 2.20), otherwise
// to standard error. Use it for failures that cannot be reported in a
// TF_Status. `where` is the name of a C field or function.
inline void Log(capi::TF_LogLevel level, const char* where, const char* what) {
  if (tensorflow.TF_Log != nullptr) {
    tensorflow.TF_Log(level, "tfplug: %s: %s", where, what);
  } else {
    std::fprintf(stderr, "tfplug: %s: %s\n", where, what);
  }
}

inline void LogWarning(const char* where, const char* what) {
  Log(capi::TF_WARNING, where, what);
}
inline void LogError(const char* where, const char* what) {
  Log(capi::TF_ERROR, where, what);
}

inline void LogError(const char* where, const absl::Status& status) {
  LogError(where, status.ToString().c_str());
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_LOG_H_
