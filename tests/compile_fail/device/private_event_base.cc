// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the second argument of tfplug::Stream must be publicly derived
// expect-errors: 1
#include "minimal_device.h"

class Event : tfplug::Event {
 public:
  absl::StatusOr<tfplug::EventStatus> Poll() override {
    return tfplug::EventStatus::kComplete;
  }
  absl::Status BlockHost() override { return absl::OkStatus(); }
};
class Stream
    : public minimal::StreamHooks<Stream, tfplug::Stream<Stream, Event>> {};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<minimal::DeviceOf<Stream>>);
