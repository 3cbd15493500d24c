// SPDX-License-Identifier: Apache-2.0
// expect: tfplug: an output of the op is expected here
#include "tfplug/ops/all.h"
#include "tfplug/plugin.h"

namespace ops = tfplug::ops;

class Kernel : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    return construction.GetAttr(ops::MatMul::transpose_a).status();
  }
  absl::Status Compute(tfplug::KernelContext& context) override {
    return context.AllocateOutput(ops::MatMul::a, {1}).status();
  }
};
TFPLUG_REGISTER_KERNEL(Kernel, ops::MatMul().T<float>());
