// SPDX-License-Identifier: Apache-2.0
// expect: must be derived from tfplug::Timer
// expect-errors: 1
#include "minimal_device.h"

class Timer {};
class Stream : public minimal::StreamHooks<
                   Stream, tfplug::Stream<Stream, minimal::Event, Timer>> {};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<minimal::DeviceOf<Stream>>);
