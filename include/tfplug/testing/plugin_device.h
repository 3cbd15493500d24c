// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_PLUGIN_DEVICE_H_
#define TFPLUG_TESTING_PLUGIN_DEVICE_H_

#include "tfplug/abi/abi.h"
#include "tfplug/testing/canary.h"
#include "tfplug/testing/host_tasks.h"
#include "tfplug/testing/struct_sizes.h"

namespace tfplug::testing {

// A device as core holds it: SP_Device, and the functions to use it with,
// which belong to the platform. Functions that core's layouts lack are null.
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

#endif  // TFPLUG_TESTING_PLUGIN_DEVICE_H_
