// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: derive the stream with
#include "minimal_device.h"

struct Device : tfplug::Device<minimal::Memory, minimal::Stream> {};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<Device>);
