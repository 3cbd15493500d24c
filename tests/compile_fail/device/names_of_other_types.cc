// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the platform has no public `static constexpr char kName[]`
// expect: the platform has no public `static constexpr char kType[]`
#include "minimal_device.h"

class Platform : public tfplug::Platform<minimal::Device> {
 public:
  static const char kName[];  // not constexpr
  static constexpr absl::string_view kType = "MY_DEVICE";
  absl::StatusOr<int> DeviceCount() override { return 1; }
};
TFPLUG_REGISTER_DEVICE(Platform);
