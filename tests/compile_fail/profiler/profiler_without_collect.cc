// SPDX-License-Identifier: Apache-2.0
// expect: tfplug: this class does not override every required hook
#include <tfplug/profiler.h>

struct Profiler : tfplug::Profiler {
  static constexpr char kDeviceType[] = "MINIMAL";
};
TFPLUG_REGISTER_PROFILER(Profiler);
