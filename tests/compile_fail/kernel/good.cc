// SPDX-License-Identifier: Apache-2.0
// expect-success
#include "minimal_device.h"

class Relu : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext&) override {
    return absl::OkStatus();
  }
};
TFPLUG_REGISTER_KERNEL(Relu, tfplug::KernelDef("Relu"));
