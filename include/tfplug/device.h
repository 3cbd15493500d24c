// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_H_
#define TFPLUG_DEVICE_H_

// The classes that make up a device, and its registration.
//
// The comment of each hook names its C field, its default and the thread that
// calls it; docs/reference/device_abi.md adds the consequence of a failure. The
// threads are:
//
//   load       the thread that loads the library by importing TensorFlow; once
//   first use  the thread that creates TensorFlow's devices, at the first
//              context or session; TensorFlow holds a lock for each ordinal
//   any        any thread that runs ops or copies; several at once
//   polling    TensorFlow's polling thread, one for each device; it holds a
//              lock of TensorFlow's during the call
//   exit       the thread that exits the process; stock TensorFlow never
//              unloads a plug-in, so this call may never happen
#include "tfplug/base/device_memory.h"
#include "tfplug/base/status.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/device/allocator.h"
#include "tfplug/device/device.h"
#include "tfplug/device/event.h"
#include "tfplug/device/host_task.h"
#include "tfplug/device/platform.h"
#include "tfplug/device/register_device.h"
#include "tfplug/device/stream.h"
#include "tfplug/device/timer.h"

#endif  // TFPLUG_DEVICE_H_
