// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: this kernel needs a public constructor
// expect-errors: 1
#include "minimal_device.h"

class Relu : public tfplug::Kernel {
  Relu() = default;

 public:
  absl::Status Compute(tfplug::KernelContext&) override {
    return absl::OkStatus();
  }
};
TFPLUG_REGISTER_KERNEL(Relu, tfplug::KernelDef("Relu"));
