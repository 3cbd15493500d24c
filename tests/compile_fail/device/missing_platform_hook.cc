// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the platform class does not override DeviceCount; copy its declaration from tfplug/device/platform.h
// expect-errors: 1
#include "minimal_device.h"

class Platform : public tfplug::Platform<minimal::Device> {
 public:
  static constexpr char kName[] = "MY_DEVICE";
  static constexpr char kType[] = "MY_DEVICE";
};
TFPLUG_REGISTER_DEVICE(Platform);
