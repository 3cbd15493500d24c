// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_REGISTERED_PLATFORM_H_
#define TFPLUG_BASE_INTERNAL_REGISTERED_PLATFORM_H_

namespace tfplug::internal {

// An address that stands for a type, within this library.
template <class T>
__attribute__((visibility("hidden"))) const void* TypeTag() {
  static const char tag = 0;
  return &tag;
}

// The platform of this library: its device type is what kernels are for unless
// they say otherwise, its stream is what they run on.
struct RegisteredPlatform {
  const char* device_type = nullptr;
  const void* stream_type = nullptr;  // TypeTag<Stream>()
};
__attribute__((
    visibility("hidden"))) inline RegisteredPlatform registered_platform;

}  // namespace tfplug::internal

#endif  // TFPLUG_BASE_INTERNAL_REGISTERED_PLATFORM_H_
