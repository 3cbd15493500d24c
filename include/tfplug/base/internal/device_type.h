// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_DEVICE_TYPE_H_
#define TFPLUG_BASE_INTERNAL_DEVICE_TYPE_H_

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// Returns whether TensorFlow accepts `name` as a platform name or device type:
// [A-Z][A-Z_]*. The argument is a C string, because g++ -fsanitize=undefined
// rejects the null check of absl::string_view in constant expressions.
constexpr bool IsDeviceType(const char* name) {
  if (*name == '\0' || *name == '_') return false;
  for (; *name != '\0'; ++name) {
    if (*name != '_' && (*name < 'A' || *name > 'Z')) return false;
  }
  return true;
}

// Returns whether `type` contains "CPU". TensorFlow's graph optimizers treat
// every such device as the CPU, and replace its ops with ops for which only the
// CPU has kernels.
constexpr bool IsTakenForCpu(const char* type) {
  for (; *type != '\0'; ++type) {
    if (type[0] == 'C' && type[1] == 'P' && type[2] == 'U') return true;
  }
  return false;
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_DEVICE_TYPE_H_
