// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: this kernel does not override Compute (ComputeAsync); copy its declaration from tfplug/kernel/kernel.h (async_kernel.h)
// expect-errors: 1
#include "minimal_device.h"

class Relu : public tfplug::Kernel {};
TFPLUG_REGISTER_KERNEL(Relu, tfplug::KernelDef("Relu"));
