// SPDX-License-Identifier: Apache-2.0
// expect: kName
// expect: kType
#include "minimal_device.h"

class Platform : public tfplug::Platform<minimal::Device> {
 public:
  absl::StatusOr<int> DeviceCount() override { return 1; }
};
TFPLUG_REGISTER_DEVICE(Platform);
