// SPDX-License-Identifier: Apache-2.0
// expect: must be derived from tfplug::Event
// expect-errors: 1
#include "minimal_device.h"

class Event {};
class Stream
    : public minimal::StreamHooks<Stream, tfplug::Stream<Stream, Event>> {};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<minimal::DeviceOf<Stream>>);
