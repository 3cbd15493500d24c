// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_REGISTERED_PLATFORM_H_
#define TFPLUG_BASE_INTERNAL_REGISTERED_PLATFORM_H_

#include "tfplug/base/internal/python_updates.h"

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// Returns an address that identifies the type within this library.
template <class T>
const void* TypeTag() {
  static const char tag = 0;
  return &tag;
}

// Describes the platform that this library registers; filled when the library
// is loaded.
struct RegisteredPlatform {
  // The device type for kernels that are registered without one.
  const char* device_type = nullptr;
  // TypeTag<Stream>() of the platform's stream class, which a kernel's
  // GetStream must name.
  const void* stream_type = nullptr;
  // &WrapPythonUpdates, or null if the platform opts out.
  decltype(&WrapPythonUpdates) wrap_python_updates = nullptr;
};
inline RegisteredPlatform registered_platform;

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_REGISTERED_PLATFORM_H_
