// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_H_
#define TFPLUG_DEVICE_H_

// Everything a device is written with, and its registration.
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
