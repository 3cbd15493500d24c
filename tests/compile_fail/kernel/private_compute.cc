// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: this kernel's Compute (ComputeAsync) must be public
// expect-errors: 1
#include "minimal_device.h"

class Relu : public tfplug::Kernel {
  absl::Status Compute(tfplug::KernelContext&) override {
    return absl::OkStatus();
  }
};
TFPLUG_REGISTER_KERNEL(Relu, tfplug::KernelDef("Relu"));
