// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PROFILER_H_
#define TFPLUG_PROFILER_H_

// A profiler written by the author. A device has a profiler without this
// header: see Platform::kHasProfiler.
#include "tfplug/profiler/profiler.h"
#include "tfplug/profiler/register_profiler.h"
#include "tfplug/profiler/xspace.h"

#endif  // TFPLUG_PROFILER_H_
