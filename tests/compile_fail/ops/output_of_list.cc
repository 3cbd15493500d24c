// SPDX-License-Identifier: Apache-2.0
// expect: its index depends on the node; pass the index as an int
#include "tfplug/ops/all.h"
#include "tfplug/plugin.h"

namespace ops = tfplug::ops;

class Kernel : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    return construction.GetAttr(ops::MatMul::transpose_a).status();
  }
  absl::Status Compute(tfplug::KernelContext& context) override {
    return context.AllocateOutput(ops::Split::output, {1}).status();
  }
};
TFPLUG_REGISTER_KERNEL(Kernel, ops::MatMul().T<float>());
