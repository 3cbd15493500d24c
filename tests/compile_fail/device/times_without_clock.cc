// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: override both Timer::GetTimes and Device::GetTime
// expect-errors: 1
#include "minimal_device.h"

class Timer : public tfplug::HostTimer {
 public:
  absl::StatusOr<tfplug::WorkTimes> GetTimes() override {
    return tfplug::WorkTimes();
  }
};
class Stream : public minimal::StreamHooks<
                   Stream, tfplug::Stream<Stream, minimal::Event, Timer>> {};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<minimal::DeviceOf<Stream>>);
