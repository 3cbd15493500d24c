// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: a kernel must be publicly derived from tfplug::Kernel
// expect-errors: 1
#include "minimal_device.h"

class Relu {};
TFPLUG_REGISTER_KERNEL(Relu, tfplug::KernelDef("Relu"));
