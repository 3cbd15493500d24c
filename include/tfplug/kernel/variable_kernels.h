// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_VARIABLE_KERNELS_H_
#define TFPLUG_KERNEL_VARIABLE_KERNELS_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/kernel/kernel.h"
#include "tfplug/kernel/register_kernel.h"
#include "tfplug/kernel/variables.h"

// Ready kernels for tf.Variable on a device: assign, assign_add, assign_sub.
// Give them the author's Code (see variables.h) and the types it can do:
//
//   static const bool variables =
//       tfplug::RegisterVariableKernels<Variables, float, tfplug::Half>();
namespace tfplug {

// AssignVariableOp. Registered only where core exports what it needs: core's
// own kernel for device type DEFAULT is right as long as nothing is copied.
template <class Code>
class AssignVariableOp : public Kernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    if (!construction.HasAttr("validate_shape")) return absl::OkStatus();
    const auto validate = construction.GetAttr<bool>("validate_shape");
    if (!validate.ok()) return validate.status();
    validate_shape_ = *validate;
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& context) override {
    return AssignVariable<Code>(context, 0, 1, validate_shape_);
  }

 private:
  bool validate_shape_ = false;
};

// AssignAddVariableOp and AssignSubVariableOp. Where core does not export what
// they need (2.19 to 2.21) they still stand before core's own kernels, which
// write through the device's pointer on the host, and fail in words.
template <class Code, VariableUpdate update>
class AssignUpdateVariableOp : public Kernel {
 public:
  absl::Status Compute(KernelContext& context) override {
    if (ABSL_PREDICT_FALSE(
            !Has(&CApi::TF_GetInputTensorFromVariable) ||
            !Has(&CApi::TF_MaybeLockVariableInputMutexesInOrder) ||
            !Has(&CApi::TF_ReleaseVariableInputLockHolder))) {
      return CannotUpdate();
    }
    return UpdateVariable<Code>(context, 0, 1, update);
  }

 private:
  [[gnu::cold, gnu::noinline]] static absl::Status CannotUpdate() {
    const absl::Status why = Require(&CApi::TF_GetInputTensorFromVariable);
    constexpr bool kAdds = update == VariableUpdate::kAdd;
    return absl::UnimplementedError(
        std::string(why.message()) +
        ", and without it a plug-in cannot update a variable in place; "
        "TensorFlow's own kernel would write to device memory from the host. "
        "Use " +
        (kAdds ? "v.assign(v + delta) instead of v.assign_add(delta)"
               : "v.assign(v - delta) instead of v.assign_sub(delta)"));
  }
};

template <class Code, class... Types>
bool RegisterVariableKernels() {
  const std::vector<DataType> types = {DataTypeOf<Types>()...};
  const auto def = [&](const char* op) {
    return KernelDef(op).TypeConstraint("dtype", types).HostMemory("resource");
  };
  RegisterKernel<AssignVariableOp<Code>>(def("AssignVariableOp").OnlyIf([] {
    return Has(&CApi::TF_AssignVariable);
  }));
  RegisterKernel<AssignUpdateVariableOp<Code, VariableUpdate::kAdd>>(
      def("AssignAddVariableOp"));
  RegisterKernel<AssignUpdateVariableOp<Code, VariableUpdate::kSub>>(
      def("AssignSubVariableOp"));
  return true;
}

}  // namespace tfplug

#endif  // TFPLUG_KERNEL_VARIABLE_KERNELS_H_
