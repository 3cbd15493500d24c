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

#pragma GCC visibility push(hidden)

// Functions for kernels that read and write variables: optimizers, assignments
// and TensorFlow 1's references. variable_kernels.h has complete kernels.
//
// TensorFlow exports the C functions in 2.6 to 2.18 and from 2.22 on, but not
// in 2.19 to 2.21, where these functions fail with UNIMPLEMENTED. If one of
// TensorFlow's functions fails, it has already failed the run; the error
// returned here only reports that, and the kernel should return it.
namespace tfplug {

enum class VariableUpdate { kAdd = 0, kSub = 1 };

// The author's device code for variables: derive from this class and add the
// static functions that the functions below need.
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

  // Enqueues a copy of a variable's value. TensorFlow calls it before an
  // in-place change of a variable whose buffer another tensor shares.
  static absl::Status Copy(KernelContext& context, const Tensor& from,
                           Tensor& to) {
    const auto stream = context.GetStream<StreamT>();
    if (!stream.ok()) return stream.status();
    return (*stream)->CopyDeviceToDevice(to.memory(), from.memory(),
                                         from.byte_size());
  }
};

// ---- Assignment ------------------------------------------------------------

// Assigns input `value` to the variable that input `input` refers to; the
// variable then shares the value's buffer. With validate_shape (2.10 and newer)
// a different shape is an error.
template <class Code>
absl::Status AssignVariable(KernelContext& context, int input, int value,
                            bool validate_shape) {
  if (auto s = Require(&CApi::TF_AssignVariable); !s.ok()) return s;
  const auto function = internal::tensorflow.TF_AssignVariable;
  constexpr auto kCopy = &kernel_internal::VariableHooks<Code>::copy_func;
  return kernel_internal::CallOnVariable(context, [&](capi::TF_Status* status) {
    // The argument was added in 2.10, together with TF_AssignRefVariable.
    if (Has(&CApi::TF_AssignRefVariable)) {
      function(context.get(), input, value, validate_shape, kCopy, status);
    } else {
      // The intermediate type silences the warning about the cast.
      reinterpret_cast<capi::TF_AssignVariable_2_6>(
          reinterpret_cast<void (*)()>(function))(context.get(), input, value,
                                                  kCopy, status);
    }
  });
}

// Assigns to a reference variable of TensorFlow 1; output `output` then refers
// to it. 2.10 to 2.18, and from 2.22 on.
template <class Code>
absl::Status AssignRefVariable(KernelContext& context, int input, int output,
                               int value, bool use_locking,
                               bool validate_shape) {
  if (auto s = Require(&CApi::TF_AssignRefVariable); !s.ok()) return s;
  return kernel_internal::SetOutputWith(
      context, output, [&](capi::TF_Status* status) {
        internal::tensorflow.TF_AssignRefVariable(
            context.get(), input, output, value, use_locking, validate_shape,
            &kernel_internal::VariableHooks<Code>::copy_func, status);
      });
}

// ---- Locks and values ------------------------------------------------------

// Holds the locks of some variables until it is destroyed.
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

// Locks the variables that `inputs` refer to, in an order that prevents
// deadlocks between kernels. The locks are shared unless `exclusive`. With
// `sparse`, all later reads of the variables copy the value; pass the same
// `sparse` to GetVariableTensor, which otherwise prepares the variable for the
// other kind of access.
//
// The variables must be the first inputs, in order: some releases look up
// others incorrectly.
template <class Code>
absl::StatusOr<VariableLock> LockVariables(KernelContext& context,
                                           absl::Span<const int> inputs,
                                           bool exclusive,
                                           bool sparse = false) {
  const auto function = &CApi::TF_MaybeLockVariableInputMutexesInOrder;
  if (auto s = Require(function); !s.ok()) return s;
  capi::TF_VariableInputLockHolder* holder = nullptr;
  absl::Status result =
      kernel_internal::CallOnVariable(context, [&](capi::TF_Status* status) {
        (internal::tensorflow.*function)(
            context.get(), exclusive, sparse, inputs.data(), inputs.size(),
            &kernel_internal::VariableHooks<Code>::copy_func, &holder, status);
      });
  VariableLock lock(holder);
  if (!result.ok()) return result;
  return lock;
}

// Returns the value of the variable that input `input` refers to, for in-place
// changes under a VariableLock, to which `sparse` was passed as well. Pass
// `is_variant` for a variable of type variant.
template <class Code>
absl::StatusOr<Tensor> GetVariableTensor(KernelContext& context, int input,
                                         bool lock_held,
                                         bool is_variant = false,
                                         bool sparse = false) {
  if (auto s = Require(&CApi::TF_GetInputTensorFromVariable); !s.ok()) return s;
  capi::TF_Tensor* raw = nullptr;
  absl::Status result =
      kernel_internal::CallOnVariable(context, [&](capi::TF_Status* status) {
        internal::tensorflow.TF_GetInputTensorFromVariable(
            context.get(), input, lock_held, is_variant, sparse,
            &kernel_internal::VariableHooks<Code>::copy_func, &raw, status);
      });
  Tensor tensor(raw);
  // 2.12 does not set the status on success.
  if (tensor) return tensor;
  return result.ok() ? absl::InternalError("TensorFlow returned no tensor")
                     : result;
}

// ---- Updates ---------------------------------------------------------------

// Calls Code::Update on the variable that input `input` refers to and on input
// `value`, which must have the same shape, under the variable's lock.
template <class Code>
absl::Status UpdateVariable(KernelContext& context, int input, int value,
                            VariableUpdate update) {
  auto lock = LockVariables<Code>(context, {input}, /*exclusive=*/true);
  if (!lock.ok()) return lock.status();
  auto variable = GetVariableTensor<Code>(context, input, /*lock_held=*/true);
  if (!variable.ok()) return variable.status();
  const auto tensor = context.GetInput(value);
  if (!tensor.ok()) return tensor.status();
  if (variable->shape() != tensor->shape()) {
    return absl::InvalidArgumentError(
        "Cannot update variable with shape " + variable->shape().ToString() +
        " using a Tensor with shape " + tensor->shape().ToString() +
        ", shapes must be equal.");
  }
  return Code::Update(context, update, *variable, *tensor);
}

// Updates the variable with TF_AssignUpdateVariable, which also supports
// variants. TensorFlow aborts if the variable does not exist, so its existence
// is checked first.
template <class Code>
absl::Status AssignUpdateVariable(KernelContext& context, int input, int value,
                                  VariableUpdate update,
                                  bool is_variant = false) {
  if (auto s = Require(&CApi::TF_AssignUpdateVariable); !s.ok()) return s;
  {
    auto lock = LockVariables<Code>(context, {input}, /*exclusive=*/true);
    if (!lock.ok()) return lock.status();
    const auto exists =
        GetVariableTensor<Code>(context, input, /*lock_held=*/true, is_variant);
    if (!exists.ok()) return exists.status();
  }
  return kernel_internal::CallOnVariable(context, [&](capi::TF_Status* status) {
    internal::tensorflow.TF_AssignUpdateVariable(
        context.get(), input, value, static_cast<int>(update), is_variant,
        &kernel_internal::VariableHooks<Code>::copy_func,
        &kernel_internal::VariableHooks<Code>::update_func, status);
  });
}

// ---- TensorFlow 1's references and temporary variables ---------------------

// Makes output `output` refer to the variable that input `input` refers to. No
// effect if the input is a resource. 2.6 to 2.18, from 2.22 on.
inline absl::Status ForwardRefInput(KernelContext& context, int input,
                                    int output) {
  const auto function = &CApi::TF_OpKernelContext_ForwardRefInputToRefOutput;
  if (auto s = Require(function); !s.ok()) return s;
  if (input < 0 || input >= context.num_inputs() || output < 0 ||
      output >= context.num_outputs()) {
    return absl::OutOfRangeError("ForwardRefInput: the node has no input " +
                                 std::to_string(input) + " or no output " +
                                 std::to_string(output));
  }
  (internal::tensorflow.*function)(context.get(), input, output);
  context.AllowUnsetOutput(output);
  return absl::OkStatus();
}

// Creates a variable for the duration of one step, as output 0, in
// uninitialized device memory. 2.15 to 2.18, from 2.22 on.
inline absl::Status MakeTemporaryVariable(KernelContext& context,
                                          DataType dtype, const Shape& shape,
                                          absl::string_view name) {
  if (auto s = Require(&CApi::TF_TemporaryVariable); !s.ok()) return s;
  capi::TF_StringView c_name = {name.data(), name.size()};
  return kernel_internal::SetOutputWith(
      context, 0, [&](capi::TF_Status* status) {
        internal::tensorflow.TF_TemporaryVariable(
            context.get(), static_cast<capi::TF_DataType>(dtype),
            shape.dims().data(), shape.rank(), &c_name,
            &kernel_internal::AllocateTemporary, status);
      });
}

// Destroys the temporary variable that input `input` refers to; output 0
// becomes its value. 2.15 to 2.18, from 2.22 on.
inline absl::Status DestroyTemporaryVariable(KernelContext& context, int input,
                                             absl::string_view name) {
  if (auto s = Require(&CApi::TF_DestroyTemporaryVariable); !s.ok()) return s;
  capi::TF_StringView c_name = {name.data(), name.size()};
  return kernel_internal::SetOutputWith(
      context, 0, [&](capi::TF_Status* status) {
        internal::tensorflow.TF_DestroyTemporaryVariable(context.get(), input,
                                                         &c_name, status);
      });
}

// ---- Variants --------------------------------------------------------------

// Sets output 0 to the sum of all inputs, which are lists of tensors or
// optionals, with Code::Add for the tensors in them. 2.10 to 2.18, from 2.22
// on.
template <class Code>
absl::Status AddNVariant(KernelContext& context) {
  if (auto s = Require(&CApi::TF_AddNVariant); !s.ok()) return s;
  return kernel_internal::SetVariant(context, [&](capi::TF_Status* status) {
    internal::tensorflow.TF_AddNVariant(
        context.get(), &kernel_internal::VariableHooks<Code>::binary_add_func,
        status);
  });
}

// Sets output 0 to a variant like input 0, a scalar, with Code::ZerosLike for
// the tensors in it. 2.10 to 2.18, from 2.22 on.
template <class Code>
absl::Status ZerosLikeVariant(KernelContext& context) {
  if (auto s = Require(&CApi::TF_ZerosLikeVariant); !s.ok()) return s;
  return kernel_internal::SetVariant(context, [&](capi::TF_Status* status) {
    internal::tensorflow.TF_ZerosLikeVariant(
        context.get(), &kernel_internal::VariableHooks<Code>::zeros_like_func,
        status);
  });
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_VARIABLES_H_
