// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the arguments or the result of a hook of the stream class
// expect: tfplug: this hook overrides nothing: behind its name, the compiler shows
// expect: Memset32Hook, absl::
// expect: (tfplug::DeviceMemory, tfplug::WordPattern,
// expect-errors: 2
#include "minimal_device.h"

// Without `override`, this compiles but does not replace Stream::Memset32.
class Stream
    : public minimal::StreamHooks<Stream,
                                  tfplug::Stream<Stream, minimal::Event>> {
 public:
  absl::Status Memset32(tfplug::DeviceMemory, uint32_t, uint64_t) {
    return absl::OkStatus();
  }
};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<minimal::DeviceOf<Stream>>);
