// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_VARIABLES_H_
#define TFPLUG_KERNEL_VARIABLES_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tfplug/abi/tf_string_view.h"
#include "tfplug/base/capability.h"
#include "tfplug/kernel/internal/variable_hooks.h"
#include "tfplug/kernel/kernel_context.h"
#include "tfplug/kernel/tensor.h"

// Kernels over variables: what optimizers, assignments and TensorFlow 1's
// references need. variable_kernels.h has ready ones.
//
// Core exports these functions in 2.6 to 2.18 and not in 2.19 to 2.21; where
// one is missing, UNIMPLEMENTED says so in words. Where a failure is core's
// own, it has told the context, and the error here only says that it did:
// return it.
namespace tfplug {

enum class VariableUpdate { kAdd = 0, kSub = 1 };

// The author's device code for variables: derive from this and add what the
// functions used below ask for, all static.
//
//   struct Variables : tfplug::VariableCode<Stream> {
//     static absl::Status Update(KernelContext&, VariableUpdate, Tensor& to,
//                                const Tensor& value);          // to += value
//     static absl::Status Add(KernelContext&, const Tensor& a,
//                             const Tensor& b, Tensor& out);    // AddNVariant
//     static absl::Status ZerosLike(KernelContext&, const Tensor& like,
//                                   Tensor& out);          // ZerosLikeVariant
//   };
template <class StreamT>
struct VariableCode {
  static constexpr VariableUpdate kUpdate = VariableUpdate::kAdd;

  // A variable that somebody still reads is copied before it is changed.
  static absl::Status Copy(KernelContext& context, const Tensor& from,
                           Tensor& to) {
    const auto stream = context.GetStream<StreamT>();
    if (!stream.ok()) return stream.status();
    return (*stream)->CopyDeviceToDevice(to.memory(), from.memory(),
                                         from.byte_size());
  }
};

// ---- Assignment ------------------------------------------------------------

// The variable that input `input` holds gets input `value`, whose buffer it
// shares. With validate_shape (2.10 and newer) another shape is an error.
template <class Code>
absl::Status AssignVariable(KernelContext& context, int input, int value,
                            bool validate_shape) {
  if (auto s = Require(&CApi::TF_AssignVariable); !s.ok()) return s;
  const auto function = internal::tensorflow.TF_AssignVariable;
  constexpr auto kCopy = &internal::VariableHooks<Code>::copy_func;
  return internal::CallOnVariable(context, [&](capi::TF_Status* status) {
    // The argument came in 2.10, with TF_AssignRefVariable.
    if (Has(&CApi::TF_AssignRefVariable)) {
      function(context.get(), input, value, validate_shape, kCopy, status);
    } else {
      // By way of a type that says nothing, for the compiler's peace of mind.
      reinterpret_cast<capi::TF_AssignVariable_2_6>(
          reinterpret_cast<void (*)()>(function))(context.get(), input, value,
                                                  kCopy, status);
    }
  });
}

// The same for a reference variable, which output `output` then refers to.
// 2.10 to 2.18.
template <class Code>
absl::Status AssignRefVariable(KernelContext& context, int input, int output,
                               int value, bool use_locking,
                               bool validate_shape) {
  if (auto s = Require(&CApi::TF_AssignRefVariable); !s.ok()) return s;
  absl::Status result =
      internal::CallOnVariable(context, [&](capi::TF_Status* status) {
        internal::tensorflow.TF_AssignRefVariable(
            context.get(), input, output, value, use_locking, validate_shape,
            &internal::VariableHooks<Code>::copy_func, status);
      });
  if (result.ok()) context.MarkOutput(output);
  return result;
}

// ---- Locks and values ------------------------------------------------------

// Variables that are locked while this lives.
class VariableLock {
 public:
  explicit VariableLock(capi::TF_VariableInputLockHolder* holder)
      : holder_(holder) {}

 private:
  struct Deleter {
    void operator()(capi::TF_VariableInputLockHolder* holder) const {
      internal::tensorflow.TF_ReleaseVariableInputLockHolder(holder);
    }
  };
  std::unique_ptr<capi::TF_VariableInputLockHolder, Deleter> holder_;
};

// Locks the variables that `inputs` hold, in the order that keeps two kernels
// from waiting for each other; shared unless `exclusive`. With `sparse` they
// become variables whose reads copy.
//
// The variables must be the first inputs, in order: releases look up others
// wrongly.
template <class Code>
absl::StatusOr<VariableLock> LockVariables(KernelContext& context,
                                           absl::Span<const int> inputs,
                                           bool exclusive,
                                           bool sparse = false) {
  const auto function = &CApi::TF_MaybeLockVariableInputMutexesInOrder;
  if (auto s = Require(function); !s.ok()) return s;
  capi::TF_VariableInputLockHolder* holder = nullptr;
  absl::Status result =
      internal::CallOnVariable(context, [&](capi::TF_Status* status) {
        (internal::tensorflow.*function)(
            context.get(), exclusive, sparse, inputs.data(), inputs.size(),
            &internal::VariableHooks<Code>::copy_func, &holder, status);
      });
  VariableLock lock(holder);
  if (!result.ok()) return result;
  return lock;
}

// The value of the variable that input `input` holds, to be changed in place
// under a VariableLock.
template <class Code>
absl::StatusOr<Tensor> VariableTensor(KernelContext& context, int input,
                                      bool lock_held, bool is_variant = false,
                                      bool sparse = false) {
  if (auto s = Require(&CApi::TF_GetInputTensorFromVariable); !s.ok()) return s;
  capi::TF_Tensor* raw = nullptr;
  absl::Status result =
      internal::CallOnVariable(context, [&](capi::TF_Status* status) {
        internal::tensorflow.TF_GetInputTensorFromVariable(
            context.get(), input, lock_held, is_variant, sparse,
            &internal::VariableHooks<Code>::copy_func, &raw, status);
      });
  Tensor tensor(raw);
  // 2.12 leaves the status alone when it has the tensor.
  if (tensor) return tensor;
  return result.ok() ? absl::InternalError("core gave no tensor") : result;
}

// ---- Updates ---------------------------------------------------------------

// Code::Update on the variable that input `input` holds and input `value`, of
// the same shape, under the variable's lock.
template <class Code>
absl::Status UpdateVariable(KernelContext& context, int input, int value,
                            VariableUpdate update) {
  auto lock = LockVariables<Code>(context, {input}, /*exclusive=*/true);
  if (!lock.ok()) return lock.status();
  auto variable = VariableTensor<Code>(context, input, /*lock_held=*/true);
  if (!variable.ok()) return variable.status();
  const auto tensor = context.GetInput(value);
  if (!tensor.ok()) return tensor.status();
  if (variable->shape() != tensor->shape()) {
    return absl::InvalidArgumentError(
        "the variable has the shape " + variable->shape().ToString() +
        ", the value " + tensor->shape().ToString());
  }
  return Code::Update(context, update, *variable, *tensor);
}

// The same by core's one function for it, which also does variants. Core ends
// the process over a variable that does not exist, so that is looked at first.
template <class Code>
absl::Status AssignUpdateVariable(KernelContext& context, int input, int value,
                                  VariableUpdate update,
                                  bool is_variant = false) {
  if (auto s = Require(&CApi::TF_AssignUpdateVariable); !s.ok()) return s;
  {
    auto lock = LockVariables<Code>(context, {input}, /*exclusive=*/true);
    if (!lock.ok()) return lock.status();
    const auto exists =
        VariableTensor<Code>(context, input, /*lock_held=*/true, is_variant);
    if (!exists.ok()) return exists.status();
  }
  return internal::CallOnVariable(context, [&](capi::TF_Status* status) {
    internal::tensorflow.TF_AssignUpdateVariable(
        context.get(), input, value, static_cast<int>(update), is_variant,
        &internal::VariableHooks<Code>::copy_func,
        &internal::VariableHooks<Code>::update_func, status);
  });
}

// ---- References and temporary variables of TensorFlow 1's ------------------

// Output `output` refers to what input `input` refers to; nothing happens if
// that is a resource. 2.6 to 2.18.
inline absl::Status ForwardRefInput(KernelContext& context, int input,
                                    int output) {
  const auto function = &CApi::TF_OpKernelContext_ForwardRefInputToRefOutput;
  if (auto s = Require(function); !s.ok()) return s;
  if (input < 0 || input >= context.num_inputs() || output < 0 ||
      output >= context.num_outputs()) {
    return absl::OutOfRangeError("there is no input " + std::to_string(input) +
                                 " or no output " + std::to_string(output));
  }
  (internal::tensorflow.*function)(context.get(), input, output);
  context.MarkOutput(output);
  return absl::OkStatus();
}

// A variable that lives for one step, as output 0, in device memory that
// nobody has written to. 2.15 to 2.18.
inline absl::Status TemporaryVariable(KernelContext& context, DataType dtype,
                                      const Shape& shape,
                                      absl::string_view name) {
  if (auto s = Require(&CApi::TF_TemporaryVariable); !s.ok()) return s;
  capi::TF_StringView c_name = {name.data(), name.size()};
  absl::Status result =
      internal::CallOnVariable(context, [&](capi::TF_Status* status) {
        internal::tensorflow.TF_TemporaryVariable(
            context.get(), static_cast<capi::TF_DataType>(dtype),
            shape.dims().data(), shape.rank(), &c_name,
            &internal::AllocateTemporary, status);
      });
  if (result.ok()) context.MarkOutput(0);
  return result;
}

// Ends it: input `input` refers to it, output 0 becomes its value.
inline absl::Status DestroyTemporaryVariable(KernelContext& context, int input,
                                             absl::string_view name) {
  if (auto s = Require(&CApi::TF_DestroyTemporaryVariable); !s.ok()) return s;
  capi::TF_StringView c_name = {name.data(), name.size()};
  absl::Status result =
      internal::CallOnVariable(context, [&](capi::TF_Status* status) {
        internal::tensorflow.TF_DestroyTemporaryVariable(context.get(), input,
                                                         &c_name, status);
      });
  if (result.ok()) context.MarkOutput(0);
  return result;
}

// ---- Variants --------------------------------------------------------------

// Output 0 is the sum of all inputs, lists of tensors or optionals, by
// Code::Add on the tensors in them. 2.10 to 2.18.
template <class Code>
absl::Status AddNVariant(KernelContext& context) {
  if (auto s = Require(&CApi::TF_AddNVariant); !s.ok()) return s;
  absl::Status result =
      internal::CallOnVariable(context, [&](capi::TF_Status* status) {
        internal::tensorflow.TF_AddNVariant(
            context.get(), &internal::VariableHooks<Code>::binary_add_func,
            status);
      });
  if (result.ok()) context.MarkOutput(0);
  return result;
}

// Output 0 is as input 0, a scalar variant, with Code::ZerosLike for the
// tensors in it. 2.10 to 2.18.
template <class Code>
absl::Status ZerosLikeVariant(KernelContext& context) {
  if (auto s = Require(&CApi::TF_ZerosLikeVariant); !s.ok()) return s;
  absl::Status result =
      internal::CallOnVariable(context, [&](capi::TF_Status* status) {
        internal::tensorflow.TF_ZerosLikeVariant(
            context.get(), &internal::VariableHooks<Code>::zeros_like_func,
            status);
      });
  if (result.ok()) context.MarkOutput(0);
  return result;
}

}  // namespace tfplug

#endif  // TFPLUG_KERNEL_VARIABLES_H_
