// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_RELEASE_H_
#define TFPLUG_BASE_INTERNAL_RELEASE_H_

#include <cstdlib>

#include "tfplug/base/internal/tensorflow.h"

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// A release of TensorFlow, such as 2.21; 0.0 if it is unknown.
struct Release {
  long major = 0, minor = 0;
};

// Parses the result of TF_Version, such as "2.22.0-rc0".
inline Release ParseRelease(const char* version) {
  char* rest = nullptr;
  const long major = std::strtol(version, &rest, 10);
  if (*rest != '.') return {};
  return {major, std::strtol(rest + 1, nullptr, 10)};
}

// Returns the release of the TensorFlow in this process. Takes about 200
// instructions: not for each launch of a kernel.
inline Release CurrentRelease() {
  if (tensorflow.TF_Version == nullptr) return {};
  return ParseRelease(tensorflow.TF_Version());
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_RELEASE_H_
