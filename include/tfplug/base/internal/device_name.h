// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_DEVICE_NAME_H_
#define TFPLUG_BASE_INTERNAL_DEVICE_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// The type of a device and the index after it, both "" if the name has none.
struct DevicePart {
  absl::string_view type, index;
};

// Returns the part of a device's name that names the device. In addition to
// ".../device:TYPE:0", TensorFlow accepts ".../TYPE:0" for CPU and GPU, in upper
// or lower case; the index is optional.
inline DevicePart DevicePartOf(absl::string_view name) {
  while (!name.empty()) {
    if (name.front() == '/') name.remove_prefix(1);
    const absl::string_view part = name.substr(0, name.find('/'));
    name.remove_prefix(part.size());
    const size_t colon = part.find(':');
    const absl::string_view key = part.substr(0, colon);
    const absl::string_view value =
        colon == part.npos ? absl::string_view() : part.substr(colon + 1);
    if (key == "device") {
      const size_t index = value.find(':');
      if (index == value.npos) return {value, {}};
      return {value.substr(0, index), value.substr(index + 1)};
    }
    if (key == "cpu" || key == "CPU") return {"CPU", value};
    if (key == "gpu" || key == "GPU") return {"GPU", value};
  }
  return {};
}

// Returns the device type in the name of a device, or "" if it has none.
inline absl::string_view DeviceTypeOf(absl::string_view name) {
  return DevicePartOf(name).type;
}

// Returns the name of the CPU in the same task as the device `name`, which must
// have a type.
inline std::string CpuInSameTask(absl::string_view name) {
  const size_t begin = name.find("/device:");
  if (begin == name.npos) return "/device:CPU:0";
  std::string cpu(name.substr(0, begin));
  cpu += "/device:CPU:0";
  const size_t end = name.find('/', begin + 1);
  if (end != name.npos) cpu.append(name.data() + end, name.size() - end);
  return cpu;
}

// Returns whether `name` is complete: "/job:J/replica:R/task:T/device:TYPE:I",
// where J and TYPE are a letter followed by letters, digits and '_', and the
// others are numbers.
inline bool IsFullDeviceName(absl::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto consume = [&](absl::string_view key) {
    const bool has = name.substr(0, key.size()) == key;
    if (has) name.remove_prefix(key.size());
    return has;
  };
  const auto consume_word = [&] {
    if (name.empty() || !is_letter(name.front())) return false;
    while (!name.empty() && (is_letter(name.front()) ||
                             is_digit(name.front()) || name.front() == '_')) {
      name.remove_prefix(1);
    }
    return true;
  };
  const auto consume_number = [&] {
    size_t digits = 0;
    while (digits < name.size() && is_digit(name[digits])) ++digits;
    name.remove_prefix(digits);
    return digits > 0 && digits < 10;  // fits into an int
  };
  return consume("/job:") && consume_word() && consume("/replica:") &&
         consume_number() && consume("/task:") && consume_number() &&
         consume("/device:") && consume_word() && consume(":") &&
         consume_number() && name.empty();
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_DEVICE_NAME_H_
