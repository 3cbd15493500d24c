// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_REGISTER_DEVICE_H_
#define TFPLUG_DEVICE_REGISTER_DEVICE_H_

#include "tfplug/device/internal/init_plugin.h"

// Makes this library a device plug-in: defines SE_InitPlugin for `...`, a class
// derived from tfplug::Platform. Use it at namespace scope, and only once in
// a library, because the C ABI allows one SE_InitPlugin. Put another device
// type into another library.
#define TFPLUG_REGISTER_DEVICE(...)                                     \
  struct TFPLUG_REGISTER_DEVICE_is_allowed_only_once_in_a_library {     \
    using RegisteredPlatform = __VA_ARGS__;                             \
  };                                                                    \
  TFPLUG_INTERNAL_DEVICE_MISTAKES(                                      \
      TFPLUG_INTERNAL_REFUSE,                                           \
      TFPLUG_REGISTER_DEVICE_is_allowed_only_once_in_a_library)         \
  static const ::tfplug::device_internal::PlatformRegistration<         \
      TFPLUG_REGISTER_DEVICE_is_allowed_only_once_in_a_library::        \
          RegisteredPlatform>                                           \
      tfplug_platform_registration;                                     \
  extern "C" __attribute__((visibility("default"))) void SE_InitPlugin( \
      ::tfplug::capi::SE_PlatformRegistrationParams* params,            \
      ::tfplug::capi::TF_Status* status) {                              \
    tfplug_platform_registration.InitPlugin(params, status);            \
  }                                                                     \
  static_assert(true, "")
#define TFPLUG_INTERNAL_REFUSE(registered, mistake, text)                     \
  static_assert(                                                              \
      ::tfplug::device_internal::kIsFree<registered::RegisteredPlatform,      \
                                         ::tfplug::device_internal::mistake>, \
      text);

#endif  // TFPLUG_DEVICE_REGISTER_DEVICE_H_
