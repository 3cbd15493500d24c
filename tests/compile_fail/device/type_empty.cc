// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: kType must begin with a capital letter
#include "minimal_device.h"

class Platform : public minimal::Platform {
 public:
  static constexpr char kType[] = "";
};
TFPLUG_REGISTER_DEVICE(Platform);
