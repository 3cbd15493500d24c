// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: derive the stream with
// expect-errors: 1
#include "minimal_device.h"

using Base = tfplug::Stream<class Stream, minimal::Event>;
class Stream : minimal::StreamHooks<Stream, Base> {};
struct Device : tfplug::Device<Stream, minimal::Memory> {};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<Device>);
