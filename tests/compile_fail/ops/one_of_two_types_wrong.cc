// SPDX-License-Identifier: Apache-2.0
// expect: tfplug: the op does not allow this type for this attribute
// expect: it allows int32, int64
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
TFPLUG_REGISTER_KERNEL(Kernel, ops::Sum().T<float>().Tidx<int, float>());
