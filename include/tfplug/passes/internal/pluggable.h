// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_PLUGGABLE_H_
#define TFPLUG_PASSES_INTERNAL_PLUGGABLE_H_

#include "absl/strings/string_view.h"
#include "tfplug/base/internal/registered_platform.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// Returns whether a device type belongs to a plug-in rather than to TensorFlow.
inline bool IsPluggable(absl::string_view device_type) {
  if (internal::registered_platform.device_type != nullptr &&
      device_type == internal::registered_platform.device_type) {
    return true;
  }
  return device_type != "CPU" && device_type != "GPU" && device_type != "TPU";
}

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_PLUGGABLE_H_
