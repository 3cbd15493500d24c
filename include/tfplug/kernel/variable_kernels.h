// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_VARIABLE_KERNELS_H_
#define TFPLUG_KERNEL_VARIABLE_KERNELS_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/kernel/kernel.h"
#include "tfplug/kernel/register_kernel.h"
#include "tfplug/kernel/variables.h"

#pragma GCC visibility push(hidden)

// Complete kernels for tf.Variable on a device: assign, assign_add, assign_sub.
// They need the author's device code (see VariableCode in variables.h) and the
// types that it supports:
//
//   static const bool variables =
//       tfplug::RegisterVariableKernels<Variables, float, tfplug::Half>();
namespace tfplug {

// AssignVariableOp. Registered only where TensorFlow exports the function that
// it needs; elsewhere TensorFlow's kernel for the device type DEFAULT applies,
// which is correct as long as nothing is copied.
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

// AssignAddVariableOp and AssignSubVariableOp. Where TensorFlow does not export
// the functions that they need (2.19 to 2.21), they are registered nevertheless
// and fail with a descriptive error: TensorFlow's own kernels would write
// through the device pointer on the host.
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
    const absl::Status missing = Require(&CApi::TF_GetInputTensorFromVariable);
    constexpr bool kAdds = update == VariableUpdate::kAdd;
    return absl::UnimplementedError(
        std::string(missing.message()) +
        ", without which a plug-in cannot update a variable in place; "
        "TensorFlow's own kernel would write to device memory from the host. "
        "Use " +
        (kAdds ? "v.assign(v + delta) instead of v.assign_add(delta)"
               : "v.assign(v - delta) instead of v.assign_sub(delta)"));
  }
};

// Registers the kernels for variables of Types. Call it in a static
// initializer; it always returns true.
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

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_VARIABLE_KERNELS_H_
