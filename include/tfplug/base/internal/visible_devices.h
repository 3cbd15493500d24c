// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_VISIBLE_DEVICES_H_
#define TFPLUG_BASE_INTERNAL_VISIBLE_DEVICES_H_

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/device_type.h"

#pragma GCC visibility push(hidden)

// The environment variable TFPLUG_VISIBLE_DEVICES divides the devices of a
// machine among processes (docs/guide/distribute.md):
//
//   TFPLUG_VISIBLE_DEVICES=0,2          these two of each type
//   TFPLUG_VISIBLE_DEVICES=SIM:0,SIM:2  these two of the type SIM, and all
//                                       devices of other types
//   TFPLUG_VISIBLE_DEVICES=             none
namespace tfplug::internal {

// Returns the ordinals that the variable names for a type, in its order, or
// all of `count` devices if it is not set or names other types only. Fails if
// the text is not of one of the forms above. The ordinals can be too large.
inline absl::StatusOr<std::vector<int>> ReadVisibleDevices(
    absl::string_view type, int count) {
  std::vector<int> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  const char* const value = std::getenv("TFPLUG_VISIBLE_DEVICES");
  if (value == nullptr) return all;
  const absl::string_view text = absl::StripAsciiWhitespace(value);
  if (text.empty()) return std::vector<int>();
  std::vector<int> ordinals;
  int entries = 0, typed = 0;
  bool names_type = false;
  bool is_valid = true;
  for (absl::string_view entry : absl::StrSplit(text, ',')) {
    entry = absl::StripAsciiWhitespace(entry);
    const size_t colon = entry.find(':');
    bool is_ours = true;
    if (colon != absl::string_view::npos) {
      const std::string prefix(entry.substr(0, colon));
      is_valid = is_valid && IsDeviceType(prefix.c_str());
      is_ours = prefix == type;
      names_type = names_type || is_ours;
      entry.remove_prefix(colon + 1);
      ++typed;
    }
    ++entries;
    int ordinal = 0;
    // SimpleAtoi accepts signs and spaces.
    is_valid = is_valid && !entry.empty() &&
               std::all_of(entry.begin(), entry.end(), absl::ascii_isdigit) &&
               absl::SimpleAtoi(entry, &ordinal);
    if (is_ours) ordinals.push_back(ordinal);
  }
  if (!is_valid || (typed != 0 && typed != entries)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "TFPLUG_VISIBLE_DEVICES=", value,
        " is no list of devices, so none is used; expected ordinals, such as "
        "0,2, or types with ordinals, such as SIM:0,SIM:2"));
  }
  if (typed != 0 && !names_type) return all;
  return ordinals;
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_VISIBLE_DEVICES_H_
