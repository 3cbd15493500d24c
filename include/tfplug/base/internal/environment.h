// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_ENVIRONMENT_H_
#define TFPLUG_BASE_INTERNAL_ENVIRONMENT_H_

#include <cstdlib>

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// Returns whether an environment variable turns something on: it does unless
// its value begins with 0. Returns `otherwise` if it is not set or empty.
inline bool IsTurnedOn(const char* variable, bool otherwise = false) {
  const char* const value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? otherwise : *value != '0';
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_ENVIRONMENT_H_
