// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the device class needs a public constructor: MyDevice(), MyDevice(int ordinal) or MyDevice(MyPlatform&, int); see the comment above tfplug::Device in tfplug/device/device.h
// expect-errors: 1
#include "minimal_device.h"

class Device : public minimal::Device {
 public:
  explicit Device(const char* name);
};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<Device>);
