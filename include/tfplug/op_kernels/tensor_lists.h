// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_TENSOR_LISTS_H_
#define TFPLUG_OP_KERNELS_TENSOR_LISTS_H_

#include <initializer_list>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "tfplug/kernel/variables.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/variables.h"

#pragma GCC visibility push(hidden)

// The ops on lists of tensors that TensorFlow does not provide for plug-in
// devices: sums and zeros, which the gradients of loops use, and lists of bool.
//
// In graphs, LowerListGradients and CastBoolLists (passes/) replace these ops
// where TensorFlow lacks what the kernels need. The kernels are registered
// nevertheless, so that TensorFlow places the ops on the device before.
namespace tfplug {
namespace op_kernels_internal {

// The device code of lists (see VariableCode), from primitives.
struct BackendLists : BackendVariables {
  static absl::Status Add(KernelContext& context, const Tensor& a,
                          const Tensor& b, const Tensor& out) {
    OpRun run(context);
    TFPLUG_RETURN_IF_ERROR(run.Start(/*on_host=*/false));
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, ViewOf(a));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, ViewOf(b));
    TFPLUG_ASSIGN_OR_RETURN(const Operand z, ViewOf(out));
    TFPLUG_ASSIGN_OR_RETURN(
        const Expression sum,
        MakeExpression({x.type, x.type}, {x.type},
                       [](Value a, Value b) { return a + b; }));
    return run.launcher().Map(sum, {x, y}, {z});
  }
  static absl::Status ZerosLike(KernelContext& context, const Tensor& /*like*/,
                                const Tensor& out) {
    OpRun run(context);
    TFPLUG_RETURN_IF_ERROR(run.Start(/*on_host=*/false));
    TFPLUG_ASSIGN_OR_RETURN(const Operand z, ViewOf(out));
    return Fill(run, z, 0);
  }
};

inline absl::Status AddListWorkaround(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kUnimplemented) return status;
  return absl::UnimplementedError(
      std::string(status.message()) +
      ", which a plug-in needs to read a list of tensors; unroll the loop "
      "(unroll=True in Keras' recurrent layers), and compute with other "
      "variants, such as sparse matrices, in tf.device(\"CPU:0\")");
}

class AddListsKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& context) override {
    return AddListWorkaround(AddNVariant<BackendLists>(context));
  }
};

class ZerosLikeListKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& context) override {
    return AddListWorkaround(ZerosLikeVariant<BackendLists>(context));
  }
};

class BoolListKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& /*context*/) override {
    return absl::UnimplementedError(
        "TensorFlow supports lists of bool only on its own devices; use "
        "tf.function, in which they are replaced, or cast to tf.float32");
  }
};

}  // namespace op_kernels_internal

// Registers the ops on lists of tensors, as in the loops of recurrent layers
// and their gradients.
inline void TensorListOps(const Registrar& registrar) {
  const auto of_lists = [](const char* op) {
    return KernelDef(op).TypeConstraint("T", {DataType::kVariant});
  };
  registrar.Add<op_kernels_internal::AddListsKernel>(of_lists("AddN"));
  registrar.Add<op_kernels_internal::ZerosLikeListKernel>(
      of_lists("ZerosLike"));
  const auto of_bools = [&](const char* op,
                            std::initializer_list<const char*> on_host) {
    KernelDef def =
        KernelDef(op).TypeConstraint("element_dtype", {DataType::kBool});
    for (const char* name : on_host) def = std::move(def).HostMemory(name);
    registrar.Add<op_kernels_internal::BoolListKernel>(std::move(def));
  };
  of_bools("TensorListFromTensor", {"element_shape"});
  of_bools("TensorListGetItem", {"index", "element_shape"});
  of_bools("TensorListSetItem", {"index"});
  of_bools("TensorListPopBack", {"element_shape"});
  of_bools("TensorListStack", {"element_shape"});
  of_bools("TensorListGather", {"indices", "element_shape"});
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_TENSOR_LISTS_H_
