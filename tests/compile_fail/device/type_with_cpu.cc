// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: kType must not contain
#include "minimal_device.h"

class Platform : public minimal::Platform {
 public:
  static constexpr char kType[] = "MY_CPU";
};
TFPLUG_REGISTER_DEVICE(Platform);
