// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the device class needs a public constructor
#include "minimal_device.h"

class Device : public minimal::Device {
 public:
  explicit Device(const char* name);
};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<Device>);
