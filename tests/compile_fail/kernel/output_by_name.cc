// SPDX-License-Identifier: Apache-2.0
// expect: tfplug: outputs have numbers, not names
#include "minimal_device.h"

class Copy : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    return context.AllocateOutput("y", tfplug::Shape{2}).status();
  }
};
TFPLUG_REGISTER_KERNEL(Copy, tfplug::KernelDef("Copy"));
