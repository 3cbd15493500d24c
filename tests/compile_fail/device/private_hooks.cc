// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the hooks of the event class must be public
// expect-errors: 1
#include "minimal_device.h"

class Event : public tfplug::Event {
  absl::StatusOr<tfplug::EventStatus> Poll() override {
    return tfplug::EventStatus::kComplete;
  }
  absl::Status BlockHost() override { return absl::OkStatus(); }
};
class Stream
    : public minimal::StreamHooks<Stream, tfplug::Stream<Stream, Event>> {};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<minimal::DeviceOf<Stream>>);
