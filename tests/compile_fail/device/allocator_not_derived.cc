// SPDX-License-Identifier: Apache-2.0
// expect: must be derived from tfplug::Allocator
// expect-errors: 1
#include "minimal_device.h"

class Memory {};
TFPLUG_REGISTER_DEVICE(
    minimal::PlatformOf<minimal::DeviceOf<minimal::Stream, Memory>>);
