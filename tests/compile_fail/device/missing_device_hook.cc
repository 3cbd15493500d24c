// SPDX-License-Identifier: Apache-2.0
// expect: this class does not override every required hook
// expect: SynchronizeAllActivity
// expect-errors: 2
#include "minimal_device.h"

class Device : public tfplug::Device<minimal::Stream, minimal::Memory> {};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<Device>);
