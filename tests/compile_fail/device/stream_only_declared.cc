// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the stream class is only declared here; define it, or include its header
// expect-errors: 1
#include "minimal_device.h"

class Stream;
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<minimal::DeviceOf<Stream>>);
