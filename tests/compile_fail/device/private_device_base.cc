// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the argument of tfplug::Platform must be publicly derived
// expect-errors: 1
#include "minimal_device.h"

class Device : tfplug::Device<minimal::Stream, minimal::Memory> {};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<Device>);
