// SPDX-License-Identifier: Apache-2.0
#include <tfplug/register_kernel.h>

#include <cstdint>

namespace cpu_sim {
namespace {

// TensorFlow's own kernels for these ops, which it registers for every device,
// write to the variable on the host: in device memory they crash, or race with
// the stream. An error is better.
class AssignUpdate final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& /*context*/) override {
    return absl::UnimplementedError(
        "this device cannot update a variable in place; write "
        "v.assign(v + x) for v.assign_add(x), and v.assign(v - x) for "
        "v.assign_sub(x)");
  }
};
TFPLUG_REGISTER_KERNEL(AssignUpdate,
                       tfplug::KernelDef("AssignAddVariableOp")
                           .TypeConstraint<float, double, int64_t>("dtype"));
TFPLUG_REGISTER_KERNEL(AssignUpdate,
                       tfplug::KernelDef("AssignSubVariableOp")
                           .TypeConstraint<float, double, int64_t>("dtype"));

}  // namespace
}  // namespace cpu_sim
