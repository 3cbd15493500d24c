// SPDX-License-Identifier: Apache-2.0
// expect-success
// What the other files spoil.
#include "minimal_device.h"

TFPLUG_REGISTER_DEVICE(minimal::Platform);
