// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: TFPLUG_REGISTER_DEVICE takes a class that is publicly derived
// expect-errors: 1
#include "minimal_device.h"

class Platform {
 public:
  using Device = minimal::Device;
  static constexpr char kName[] = "MY_DEVICE";
  static constexpr char kType[] = "MY_DEVICE";
};
TFPLUG_REGISTER_DEVICE(Platform);
