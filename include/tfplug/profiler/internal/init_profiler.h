// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PROFILER_INTERNAL_INIT_PROFILER_H_
#define TFPLUG_PROFILER_INTERNAL_INIT_PROFILER_H_

#include "tfplug/abi/tf_profiler_registration_params.h"

#pragma GCC visibility push(hidden)

namespace tfplug::profiler_internal {

using InitProfilerFunction = void (*)(capi::TF_ProfilerRegistrationParams*,
                                      capi::TF_Status*);

// The functions behind TF_InitProfiler: that of TFPLUG_REGISTER_PROFILER, and
// otherwise that of TFPLUG_REGISTER_DEVICE. Set when the library is loaded.
struct RegisteredProfiler {
  InitProfilerFunction of_author = nullptr;
  InitProfilerFunction of_device = nullptr;
};
inline RegisteredProfiler registered_profiler;

}  // namespace tfplug::profiler_internal

// The registrations of devices and profilers refer to this inline function, so
// only libraries that have a profiler export it.
extern "C" {
__attribute__((visibility("default"))) inline void TF_InitProfiler(
    ::tfplug::capi::TF_ProfilerRegistrationParams* params,
    ::tfplug::capi::TF_Status* status) {
  const ::tfplug::profiler_internal::RegisteredProfiler& registered =
      ::tfplug::profiler_internal::registered_profiler;
  (registered.of_author != nullptr ? registered.of_author
                                   : registered.of_device)(params, status);
}
}

namespace tfplug::profiler_internal {

// The reference to this variable makes the compiler emit TF_InitProfiler.
inline void EmitInitProfiler() {
  static void (*const volatile entry_point)(
      capi::TF_ProfilerRegistrationParams*, capi::TF_Status*) =
      &TF_InitProfiler;
  static_cast<void>(entry_point);
}

}  // namespace tfplug::profiler_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PROFILER_INTERNAL_INIT_PROFILER_H_
