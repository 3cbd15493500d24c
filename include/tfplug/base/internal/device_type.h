// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_DEVICE_TYPE_H_
#define TFPLUG_BASE_INTERNAL_DEVICE_TYPE_H_

#include <mutex>
#include <string>

namespace tfplug::internal {

// Core's rule for platform names and device types: [A-Z][A-Z_]*. Not by
// absl::string_view: with -fsanitize=undefined, GCC's constant expressions
// trip over the null check in it.
constexpr bool IsDeviceType(const char* name) {
  if (*name == '\0' || *name == '_') return false;
  for (; *name != '\0'; ++name) {
    if (*name != '_' && (*name < 'A' || *name > 'Z')) return false;
  }
  return true;
}

// TensorFlow's graph optimizers take each device whose type contains "CPU" for
// the CPU, and give its ops to the CPU's kernels or rewrite them into such.
constexpr bool IsTakenForCpu(const char* type) {
  for (; *type != '\0'; ++type) {
    if (type[0] == 'C' && type[1] == 'P' && type[2] == 'U') return true;
  }
  return false;
}

// A C string that lives as long as the process, for fields that core keeps;
// null for an empty name. The same one for the same name: there are few.
inline const char* InternString(const std::string& name) {
  if (name.empty()) return nullptr;
  struct Known {
    const std::string name;
    const Known* const next;
  };
  static std::mutex* const mutex = new std::mutex;
  static const Known* first = nullptr;
  std::lock_guard<std::mutex> lock(*mutex);
  for (const Known* known = first; known != nullptr; known = known->next) {
    if (known->name == name) return known->name.c_str();
  }
  first = new Known{name, first};
  return first->name.c_str();
}

}  // namespace tfplug::internal

#endif  // TFPLUG_BASE_INTERNAL_DEVICE_TYPE_H_
