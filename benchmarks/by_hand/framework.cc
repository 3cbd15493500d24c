// SPDX-License-Identifier: Apache-2.0
#include "framework.h"

TFPLUG_REGISTER_DEVICE(framework::Platform);
