// SPDX-License-Identifier: Apache-2.0
// expect-success
// The base of the other files.
#include "minimal_device.h"

TFPLUG_REGISTER_DEVICE(minimal::Platform);
