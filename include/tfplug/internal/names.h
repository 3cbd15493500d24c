// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_INTERNAL_NAMES_H_
#define TFPLUG_INTERNAL_NAMES_H_

#include <mutex>
#include <set>
#include <string>

#include "absl/strings/string_view.h"

namespace tfplug::internal {

// Core's rule for platform names and device types: [A-Z][A-Z_]*
constexpr bool IsDeviceType(absl::string_view name) {
  if (name.empty() || name[0] == '_') return false;
  for (char c : name) {
    if (c != '_' && (c < 'A' || c > 'Z')) return false;
  }
  return true;
}

// A C string that lives as long as the process, for fields that core keeps;
// null for an empty name.
inline const char* Immortal(const std::string& name) {
  if (name.empty()) return nullptr;
  static std::mutex* const mutex = new std::mutex;
  static auto* const names = new std::set<std::string>;
  std::lock_guard<std::mutex> lock(*mutex);
  return names->insert(name).first->c_str();
}

}  // namespace tfplug::internal

#endif  // TFPLUG_INTERNAL_NAMES_H_
