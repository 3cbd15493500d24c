// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_VARIABLES_H_
#define TFPLUG_OP_KERNELS_VARIABLES_H_

#include "tfplug/kernel/variable_kernels.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace op_kernels_internal {

// The device code of variables (see VariableCode), from primitives.
struct BackendVariables {
  static constexpr VariableUpdate kUpdate = VariableUpdate::kAdd;

  static absl::Status Copy(KernelContext& context, const Tensor& from,
                           Tensor& to) {
    OpRun run(context);
    TFPLUG_RETURN_IF_ERROR(run.Start(/*on_host=*/false));
    TFPLUG_ASSIGN_OR_RETURN(const Operand source, ViewOf(from));
    TFPLUG_ASSIGN_OR_RETURN(const Operand target, ViewOf(to));
    return op_kernels_internal::Copy(run, source, target);
  }

  static absl::Status Update(KernelContext& context, VariableUpdate update,
                             Tensor& to, const Tensor& value) {
    OpRun run(context);
    TFPLUG_RETURN_IF_ERROR(run.Start(/*on_host=*/false));
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, ViewOf(to));
    TFPLUG_ASSIGN_OR_RETURN(const Operand change, ViewOf(value));
    TFPLUG_ASSIGN_OR_RETURN(
        const Expression sum,
        MakeExpression({x.type, x.type}, {x.type}, [&](Value a, Value b) {
          return update == VariableUpdate::kAdd ? a + b : a - b;
        }));
    return run.launcher().Map(sum, {x, change}, {x});
  }
};

}  // namespace op_kernels_internal

// tf.Variable: assign, assign_add and assign_sub.
inline void VariableOps(const Registrar& registrar) {
  using Code = op_kernels_internal::BackendVariables;
  const auto def = [](const char* op) {
    return KernelDef(op).HostMemory("resource");
  };
  registrar.Add<AssignVariableOp<Code>>(def("AssignVariableOp").OnlyIf([] {
    return Has(&CApi::TF_AssignVariable);
  }),
                                        "dtype", kAllTypes);
  registrar.Add<AssignUpdateVariableOp<Code, VariableUpdate::kAdd>>(
      def("AssignAddVariableOp"), "dtype", kNumberTypes);
  registrar.Add<AssignUpdateVariableOp<Code, VariableUpdate::kSub>>(
      def("AssignSubVariableOp"), "dtype", kNumberTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_VARIABLES_H_
