// SPDX-License-Identifier: Apache-2.0
// expect: this class does not override every required hook
// expect: DeviceCount
// expect-errors: 2
#include "minimal_device.h"

class Platform : public tfplug::Platform<minimal::Device> {
 public:
  static constexpr char kName[] = "MY_DEVICE";
  static constexpr char kType[] = "MY_DEVICE";
};
TFPLUG_REGISTER_DEVICE(Platform);
