// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_RELEASE_H_
#define TFPLUG_TESTING_RELEASE_H_

#include <cstdint>
#include <cstdlib>

#include "tfplug/abi/function_info.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

using capi::Release;

constexpr bool operator<(Release a, Release b) {
  return a.major != b.major ? a.major < b.major : a.minor < b.minor;
}

// Parses a release such as "2.7".
inline Release ParseRelease(const char* text) {
  char* end = nullptr;
  const auto major = static_cast<uint8_t>(std::strtol(text, &end, 10));
  if (*end != '.') return {major, 0};
  return {major, static_cast<uint8_t>(std::strtol(end + 1, nullptr, 10))};
}

// Returns whether `release` exports a function.
constexpr bool IsExportedIn(Release release, capi::FunctionReleases releases) {
  const bool is_gone = releases.last.major != 0 && releases.last < release;
  const bool is_in_gap = releases.gap_last.major != 0 &&
                         !(release < releases.gap_since) &&
                         !(releases.gap_last < release);
  return !(release < releases.since) && !is_gone && !is_in_gap;
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_RELEASE_H_
