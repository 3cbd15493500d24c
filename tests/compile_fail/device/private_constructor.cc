// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the event class needs a public constructor: MyEvent() or MyEvent(MyDevice&); see the comment above tfplug::Event in tfplug/device/event.h
#include "minimal_device.h"

class Event : public minimal::Event {
  Event() = default;
};
class Stream
    : public minimal::StreamHooks<Stream, tfplug::Stream<Stream, Event>> {};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<minimal::DeviceOf<Stream>>);
