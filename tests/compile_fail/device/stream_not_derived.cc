// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: derive the stream with
// expect-errors: 1
#include "minimal_device.h"

class Stream {
 public:
  using Event = minimal::Event;
  using Timer = tfplug::HostTimer;
};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<minimal::DeviceOf<Stream>>);
