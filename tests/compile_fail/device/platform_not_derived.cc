// SPDX-License-Identifier: Apache-2.0
// expect: takes a class derived from tfplug::Platform<Device>
// expect-errors: 1
#include "minimal_device.h"

class Platform {
 public:
  using Device = minimal::Device;
  static constexpr char kName[] = "MY_DEVICE";
  static constexpr char kType[] = "MY_DEVICE";
};
TFPLUG_REGISTER_DEVICE(Platform);
