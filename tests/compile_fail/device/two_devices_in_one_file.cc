// SPDX-License-Identifier: Apache-2.0
// expect: TFPLUG_REGISTER_DEVICE_is_allowed_only_once_in_a_library
#include "minimal_device.h"

class Other : public minimal::Platform {
 public:
  static constexpr char kName[] = "OTHER";
  static constexpr char kType[] = "OTHER";
};
TFPLUG_REGISTER_DEVICE(minimal::Platform);
TFPLUG_REGISTER_DEVICE(Other);
