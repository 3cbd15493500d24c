// SPDX-License-Identifier: Apache-2.0
// expect: this class does not override every required hook
// expect: Compute
#include "minimal_device.h"

class Relu : public tfplug::Kernel {};
TFPLUG_REGISTER_KERNEL(Relu, tfplug::KernelDef("Relu"));
