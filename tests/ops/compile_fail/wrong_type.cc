// SPDX-License-Identifier: Apache-2.0
// expect: tfplug: the op Relu does not allow this type for T; it allows float,
// double, int32, uint8, int16, int8, int64, qint8, bfloat16, uint16, half,
// uint32, uint64
#include "tfplug/ops/all.h"
#include "tfplug/plugin.h"

namespace ops = tfplug::ops;

class Kernel : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    return construction.GetAttr(ops::MatMul::transpose_a).status();
  }
  absl::Status Compute(tfplug::KernelContext& context) override {
    return context.input(ops::MatMul::a).status();
  }
};
TFPLUG_REGISTER_KERNEL(Kernel, ops::Relu().T<bool>());
