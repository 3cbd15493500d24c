// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_TYPE_SETTING_H_
#define TFPLUG_BASE_INTERNAL_TYPE_SETTING_H_

#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/internal/device_type.h"
#include "tfplug/base/internal/intern_string.h"

#pragma GCC visibility push(hidden)

// The environment variable TFPLUG_DEVICE_TYPE=SIM=GPU registers a device of the
// type SIM as the type GPU, so that code and tests written for GPUs run on it
// unchanged (docs/guide/differs_from_gpu.md).
namespace tfplug::internal {

// The old and the new type; both empty if the variable is not set.
struct TypeSetting {
  std::string from, to;
};

inline absl::StatusOr<TypeSetting> ReadTypeSetting() {
  const char* const value = std::getenv("TFPLUG_DEVICE_TYPE");
  if (value == nullptr || *value == '\0') return TypeSetting();
  const std::string text = value;
  const size_t equals = text.find('=');
  TypeSetting setting;
  if (equals != std::string::npos) {
    setting = {text.substr(0, equals), text.substr(equals + 1)};
  }
  if (!IsDeviceType(setting.from.c_str()) ||
      !IsDeviceType(setting.to.c_str()) || IsTakenForCpu(setting.to.c_str())) {
    return absl::InvalidArgumentError(
        "TFPLUG_DEVICE_TYPE=" + text +
        " is ignored; expected two device types, such as SIM=GPU, in capital "
        "letters and underscores and without \"CPU\" in the second");
  }
  return setting;
}

// Returns the type to register instead of `type`, which is a string that lives
// as long as the process.
inline const char* RegisteredType(const char* type) {
  const absl::StatusOr<TypeSetting> setting = ReadTypeSetting();
  return setting.ok() && setting->from == type ? InternString(setting->to)
                                               : type;
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_TYPE_SETTING_H_
