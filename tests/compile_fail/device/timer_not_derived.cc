// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the third argument of tfplug::Stream must be publicly derived
// expect-errors: 1
#include "minimal_device.h"

class Timer {};
class Stream : public minimal::StreamHooks<
                   Stream, tfplug::Stream<Stream, minimal::Event, Timer>> {};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<minimal::DeviceOf<Stream>>);
