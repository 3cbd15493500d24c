// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PLUGIN_H_
#define TFPLUG_PLUGIN_H_

// A device and its kernels. Graph passes: tfplug/graph_pass.h; a plug-in's unit
// tests: tfplug/testing.h.
#include "tfplug/device.h"
#include "tfplug/kernel.h"

#endif  // TFPLUG_PLUGIN_H_
