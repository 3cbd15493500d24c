// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PROFILER_REGISTER_PROFILER_H_
#define TFPLUG_PROFILER_REGISTER_PROFILER_H_

#include <string_view>
#include <type_traits>

#include "tfplug/base/internal/device_type.h"
#include "tfplug/base/internal/static_text.h"
#include "tfplug/base/internal/type_setting.h"
#include "tfplug/profiler/internal/init_profiler.h"
#include "tfplug/profiler/internal/profiler_table.h"

#pragma GCC visibility push(hidden)

namespace tfplug::profiler_internal {

template <class ProfilerT>
struct ProfilerRegistration {
  static constexpr auto kDeviceType =
      internal::CopyText<std::string_view(ProfilerT::kDeviceType).size()>(
          ProfilerT::kDeviceType);

  ProfilerRegistration() {
    EmitInitProfiler();
    registered_profiler.of_author = &Init;
  }
  static void Init(capi::TF_ProfilerRegistrationParams* params,
                   capi::TF_Status* status) {
    InitProfiler<ProfilerT>(internal::RegisteredType(kDeviceType.text), params,
                            status);
  }
};

}  // namespace tfplug::profiler_internal

#pragma GCC visibility pop

// Registers `...`, a class derived from tfplug::Profiler. Use it at namespace
// scope, once in a library; it replaces the profiler that comes with
// TFPLUG_REGISTER_DEVICE. It defines TF_InitProfiler.
#define TFPLUG_REGISTER_PROFILER(...)                                 \
  struct TFPLUG_REGISTER_PROFILER_is_allowed_only_once_in_a_library { \
    using RegisteredProfiler = __VA_ARGS__;                           \
  };                                                                  \
  TFPLUG_INTERNAL_PROFILER(                                           \
      TFPLUG_REGISTER_PROFILER_is_allowed_only_once_in_a_library::    \
          RegisteredProfiler)
#define TFPLUG_INTERNAL_PROFILER(profiler)                                 \
  static_assert(std::is_convertible_v<profiler*, ::tfplug::Profiler*>,     \
                "tfplug: TFPLUG_REGISTER_PROFILER takes a class "          \
                "publicly derived from tfplug::Profiler");                 \
  TFPLUG_INTERNAL_DEVICE_TYPE_MISTAKES(TFPLUG_INTERNAL_REFUSE_PROFILER,    \
                                       profiler)                           \
  static const ::tfplug::profiler_internal::ProfilerRegistration<profiler> \
      tfplug_profiler_registration
#define TFPLUG_INTERNAL_REFUSE_PROFILER(type, mistake, text)        \
  static_assert(::tfplug::internal::kDeviceTypeMistake<type> !=     \
                    ::tfplug::internal::DeviceTypeMistake::mistake, \
                text);

#endif  // TFPLUG_PROFILER_REGISTER_PROFILER_H_
