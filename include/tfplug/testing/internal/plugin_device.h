// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_PLUGIN_DEVICE_H_
#define TFPLUG_TESTING_INTERNAL_PLUGIN_DEVICE_H_

#include "tfplug/abi/abi.h"
#include "tfplug/testing/internal/host_tasks.h"
#include "tfplug/testing/internal/with_canary.h"
#include "tfplug/testing/struct_sizes.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// TensorFlow's record of a device: SP_Device, and the platform's functions for
// it. Functions that the release lacks are null.
struct PluginDevice {
  const capi::SP_Device* get() const { return device.get(); }

  const StructSizes& sizes;
  const capi::SP_DeviceFns& device_fns;
  const capi::SP_StreamExecutor& fns;
  const capi::SP_TimerFns& timer_fns;
  WithCanary<capi::SP_Device> device;
  HostTasks host_tasks;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_PLUGIN_DEVICE_H_
