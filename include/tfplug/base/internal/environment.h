// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_ENVIRONMENT_H_
#define TFPLUG_BASE_INTERNAL_ENVIRONMENT_H_

#include <strings.h>

#include <cstdlib>

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// Returns whether an environment variable turns something on: it does unless
// its value begins with 0 or is false, off or no, in any case. Returns
// `otherwise` if it is not set or empty.
inline bool IsTurnedOn(const char* variable, bool otherwise = false) {
  const char* const value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return otherwise;
  constexpr const char* kOff[] = {"false", "off", "no"};
  for (const char* const off : kOff) {
    if (::strcasecmp(value, off) == 0) return false;
  }
  return *value != '0';
}

// Returns whether passes log what they fuse or replace, and what not.
inline bool IsFusionLogged() { return IsTurnedOn("TFPLUG_LOG_FUSION"); }

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_ENVIRONMENT_H_
