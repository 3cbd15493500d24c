// SPDX-License-Identifier: Apache-2.0
// expect-success
// The correct program; each other file has one mistake.
#include "minimal_device.h"

TFPLUG_REGISTER_DEVICE(minimal::Platform);
