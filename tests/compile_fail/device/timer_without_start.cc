// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: a stream whose timer is not a HostTimer must override StartTimer and StopTimer
// expect-errors: 1
#include "minimal_device.h"

class Timer : public tfplug::Timer {
 public:
  absl::StatusOr<uint64_t> Nanoseconds() override { return 0; }
};
class Stream : public minimal::StreamHooks<
                   Stream, tfplug::Stream<Stream, minimal::Event, Timer>> {
 public:
  absl::Status StopTimer(Timer&) override { return absl::OkStatus(); }
};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<minimal::DeviceOf<Stream>>);
