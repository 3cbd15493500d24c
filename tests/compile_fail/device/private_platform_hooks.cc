// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the hooks of the platform class must be public
// expect-errors: 1
#include "minimal_device.h"

class Platform : public tfplug::Platform<minimal::Device> {
 public:
  static constexpr char kName[] = "MY_DEVICE";
  static constexpr char kType[] = "MY_DEVICE";

 private:
  absl::StatusOr<int> DeviceCount() override { return 1; }
};
TFPLUG_REGISTER_DEVICE(Platform);
