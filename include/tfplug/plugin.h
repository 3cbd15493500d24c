// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PLUGIN_H_
#define TFPLUG_PLUGIN_H_

// What a device plug-in needs: the device and its kernels. Asynchronous
// kernels, ops of the author's own and graph passes have headers of their own.
#include "tfplug/allocator.h"
#include "tfplug/capability.h"
#include "tfplug/device.h"
#include "tfplug/device_memory.h"
#include "tfplug/event.h"
#include "tfplug/host_task.h"
#include "tfplug/kernel.h"
#include "tfplug/platform.h"
#include "tfplug/register_device.h"
#include "tfplug/register_kernel.h"
#include "tfplug/status.h"
#include "tfplug/stream.h"
#include "tfplug/tensor.h"
#include "tfplug/timer.h"

#endif  // TFPLUG_PLUGIN_H_
