// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the event class is only declared here; define it, or include its header
// expect: the timer class is only declared here
// expect: the allocator class is only declared here
// expect-errors: 3
#include "minimal_device.h"

class Event;
class Timer;
class Memory;
class Stream
    : public minimal::StreamHooks<Stream,
                                  tfplug::Stream<Stream, Event, Timer>> {};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<minimal::DeviceOf<Stream, Memory>>);
