// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the event class does not override BlockHost; copy its declaration from tfplug/device/event.h
// expect-errors: 1
#include "minimal_device.h"

class Event : public tfplug::Event {
 public:
  absl::StatusOr<tfplug::EventStatus> Poll() override {
    return tfplug::EventStatus::kComplete;
  }
};
class Stream
    : public minimal::StreamHooks<Stream, tfplug::Stream<Stream, Event>> {};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<minimal::DeviceOf<Stream>>);
