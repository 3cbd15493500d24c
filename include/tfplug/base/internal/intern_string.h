// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_INTERN_STRING_H_
#define TFPLUG_BASE_INTERNAL_INTERN_STRING_H_

#include <mutex>
#include <string>

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// Returns a copy of `text` that lives as long as the process, for C fields
// whose strings TensorFlow does not copy; null if `text` is empty. Equal
// strings share one copy. The search is linear, because there are few strings.
// Thread-safe.
inline const char* InternString(const std::string& text) {
  if (text.empty()) return nullptr;
  struct Entry {
    const std::string text;
    const Entry* const next;
  };
  static std::mutex* const mutex = new std::mutex;
  static const Entry* first = nullptr;
  std::lock_guard<std::mutex> lock(*mutex);
  for (const Entry* entry = first; entry != nullptr; entry = entry->next) {
    if (entry->text == text) return entry->text.c_str();
  }
  first = new Entry{text, first};
  return first->text.c_str();
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_INTERN_STRING_H_
