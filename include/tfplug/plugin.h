// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PLUGIN_H_
#define TFPLUG_PLUGIN_H_

// A device and its kernels. Include tfplug/graph_pass.h for graph passes and
// tfplug/testing.h in a plug-in's unit tests.
#include "tfplug/device.h"
#include "tfplug/kernel.h"

#endif  // TFPLUG_PLUGIN_H_
