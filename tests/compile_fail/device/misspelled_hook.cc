// SPDX-License-Identifier: Apache-2.0
// expect: override
// expect: BlockHostUntilDoen
#include "minimal_device.h"

class Stream
    : public minimal::StreamHooks<Stream,
                                  tfplug::Stream<Stream, minimal::Event>> {
 public:
  absl::Status BlockHostUntilDoen() override { return absl::OkStatus(); }
};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<minimal::DeviceOf<Stream>>);
