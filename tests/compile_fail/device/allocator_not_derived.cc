// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the second argument of tfplug::Device must be publicly derived
// expect-errors: 1
#include "minimal_device.h"

class Memory {};
TFPLUG_REGISTER_DEVICE(
    minimal::PlatformOf<minimal::DeviceOf<minimal::Stream, Memory>>);
