// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: TFPLUG_REGISTER_PROFILER takes a class publicly derived from tfplug::Profiler
#include <tfplug/profiler.h>

struct Profiler {
  static constexpr char kDeviceType[] = "MINIMAL";
};
TFPLUG_REGISTER_PROFILER(Profiler);
