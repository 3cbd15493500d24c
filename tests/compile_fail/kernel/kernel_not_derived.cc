// SPDX-License-Identifier: Apache-2.0
// expect: a kernel must be derived from tfplug::Kernel
#include "minimal_device.h"

class Relu {};
TFPLUG_REGISTER_KERNEL(Relu, tfplug::KernelDef("Relu"));
