// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PLUGIN_H_
#define TFPLUG_PLUGIN_H_

// Everything that a device plug-in needs.
#include "tfplug/allocator.h"
#include "tfplug/async_kernel.h"
#include "tfplug/capability.h"
#include "tfplug/device.h"
#include "tfplug/device_memory.h"
#include "tfplug/event.h"
#include "tfplug/host_task.h"
#include "tfplug/kernel.h"
#include "tfplug/platform.h"
#include "tfplug/register_device.h"
#include "tfplug/register_kernel.h"
#include "tfplug/register_op.h"
#include "tfplug/status.h"
#include "tfplug/stream.h"
#include "tfplug/tensor.h"
#include "tfplug/timer.h"

#endif  // TFPLUG_PLUGIN_H_
