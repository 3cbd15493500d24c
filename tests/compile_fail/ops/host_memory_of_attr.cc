// SPDX-License-Identifier: Apache-2.0
// expect: tfplug: HostMemory takes an input or output of the op
#include "tfplug/ops/all.h"
#include "tfplug/plugin.h"

namespace ops = tfplug::ops;

class Kernel : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    return construction.GetAttr(ops::MatMul::transpose_a).status();
  }
  absl::Status Compute(tfplug::KernelContext& context) override {
    return context.GetInput(ops::MatMul::a).status();
  }
};
TFPLUG_REGISTER_KERNEL(Kernel,
                       ops::MatMul().HostMemory(ops::MatMul::transpose_a));
