// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_LOG_H_
#define TFPLUG_BASE_INTERNAL_LOG_H_

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "tfplug/base/internal/tensorflow.h"

namespace tfplug::internal {

// One line in TensorFlow's log where this core has TF_Log (until 2.20), else on
// standard error. For what has no TF_Status to go into. `where` is a C name.
inline void LogError(const char* where, const char* what) {
  if (tensorflow.TF_Log != nullptr) {
    tensorflow.TF_Log(capi::TF_ERROR, "tfplug: %s: %s", where, what);
  } else {
    std::fprintf(stderr, "tfplug: %s: %s\n", where, what);
  }
}

inline void LogError(const char* where, const absl::Status& status) {
  LogError(where, status.ToString().c_str());
}

}  // namespace tfplug::internal

#endif  // TFPLUG_BASE_INTERNAL_LOG_H_
