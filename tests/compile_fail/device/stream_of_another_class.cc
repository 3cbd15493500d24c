// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: derive the stream with
#include "minimal_device.h"

class Stream : public minimal::StreamHooks<
                   Stream, tfplug::Stream<minimal::Stream, minimal::Event>> {};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<minimal::DeviceOf<Stream>>);
