// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: this kernel does not override Compute (ComputeAsync)
// expect-errors: 1
#include "minimal_device.h"

struct Relu : tfplug::Kernel {
  absl::Status Compute(tfplug::KernelContext) { return absl::OkStatus(); }
};
TFPLUG_REGISTER_KERNEL(Relu, tfplug::KernelDef("Relu"));
