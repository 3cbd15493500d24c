// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_INTERNAL_DEVICE_NAME_H_
#define TFPLUG_INTERNAL_DEVICE_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

namespace tfplug::internal {

// The device type in a device's name, "" if it has none. Besides
// ".../device:TYPE:0" core takes ".../TYPE:0" for the types CPU and GPU, in
// either case; a type alone has no index.
inline absl::string_view DeviceTypeOf(absl::string_view name) {
  while (!name.empty()) {
    if (name.front() == '/') name.remove_prefix(1);
    const absl::string_view part = name.substr(0, name.find('/'));
    name.remove_prefix(part.size());
    const size_t colon = part.find(':');
    const absl::string_view key = part.substr(0, colon);
    const absl::string_view value =
        colon == part.npos ? absl::string_view() : part.substr(colon + 1);
    if (key == "device") return value.substr(0, value.find(':'));
    if (key == "cpu" || key == "CPU") return "CPU";
    if (key == "gpu" || key == "GPU") return "GPU";
  }
  return {};
}

// The CPU of the machine that the device `name`, which has a type, is in.
inline std::string OnCpu(absl::string_view name) {
  const size_t begin = name.find("/device:");
  if (begin == name.npos) return "/device:CPU:0";
  std::string on_cpu(name.substr(0, begin));
  on_cpu += "/device:CPU:0";
  const size_t end = name.find('/', begin + 1);
  if (end != name.npos) on_cpu.append(name.data() + end, name.size() - end);
  return on_cpu;
}

}  // namespace tfplug::internal

#endif  // TFPLUG_INTERNAL_DEVICE_NAME_H_
