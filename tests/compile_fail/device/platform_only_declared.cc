// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the platform class is only declared here; define it, or include its header
// expect-errors: 1
#include "minimal_device.h"

class Platform;
TFPLUG_REGISTER_DEVICE(Platform);
