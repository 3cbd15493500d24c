// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the argument of tfplug::Platform must be publicly derived
// expect-errors: 1
#include "minimal_device.h"

class Device {
 public:
  using Stream = minimal::Stream;
  using Event = minimal::Event;
  using Timer = tfplug::HostTimer;
  using Allocator = minimal::Memory;
};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<Device>);
