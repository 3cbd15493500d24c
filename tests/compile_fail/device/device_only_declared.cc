// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the device class is only declared here; define it, or include its header
// expect-errors: 1
#include "minimal_device.h"

class Device;
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<Device>);
