// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_VARIABLE_FUNCTIONS_H_
#define TFPLUG_TESTING_INTERNAL_VARIABLE_FUNCTIONS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/abi/tf_string_view.h"
#include "tfplug/testing/fake_context.h"
#include "tfplug/testing/release.h"
#include "tfplug/testing/tensor.h"

#pragma GCC visibility push(hidden)

namespace tfplug::capi {

struct TF_VariableInputLockHolder
    : testing::Counted<TF_VariableInputLockHolder> {
  std::vector<std::shared_ptr<testing::Variable>> variables;
};

}  // namespace tfplug::capi

// Variables as in TensorFlow 2.6 to 2.22: most failures are reported to the
// context and do not set the status.
namespace tfplug::testing {

using capi::TF_VariableInputLockHolder;
using CopyFunction = void (*)(TF_OpKernelContext*, TF_Tensor*, TF_Tensor*);

// Returns the variable of input `i`, or null after failing the run.
inline std::shared_ptr<Variable> FindVariable(const char* function,
                                              TF_OpKernelContext* context,
                                              int i) {
  if (Fault::Hits(function)) {
    FailRun(context, absl::ResourceExhaustedError(
                         std::string("injected into ") + function));
    return nullptr;
  }
  if (!IsInput(context, i) || GetInputSlot(context, i).variable == nullptr) {
    FailRun(context, absl::NotFoundError("Resource does not exist"));
    return nullptr;
  }
  return GetInputSlot(context, i).variable;
}
// Returns the tensor of an input that must be present.
inline const TF_Tensor& InputTensor(TF_OpKernelContext* context, int i) {
  return GetInputSlot(context, i).tensor.value();
}
inline TF_Tensor MakeTensorLike(const TF_Tensor& tensor) {
  return MakeTensor(tensor.dtype, tensor.dims);
}
// Copies a value that has other readers, before an in-place change.
inline void PrepareToUpdate(TF_OpKernelContext* context, Variable& variable,
                            CopyFunction copy) {
  TF_Tensor& value = *variable.value;
  if (!variable.copy_on_read && value.buffer.use_count() == 1) return;
  TF_Tensor result = MakeTensorLike(value);
  copy(context, new TF_Tensor(value), new TF_Tensor(result));
  value = result;
}

TFPLUG_FAKE_FUNCTION void TF_AssignVariable(TF_OpKernelContext* context,
                                            int input, int value,
                                            bool validate_shape,
                                            CopyFunction copy,
                                            TF_Status* status) {
  const auto variable = FindVariable("TF_AssignVariable", context, input);
  if (variable == nullptr) return;
  const TF_Tensor& tensor = InputTensor(context, value);
  if (validate_shape && variable->value &&
      variable->value->dims != tensor.dims) {
    FailRun(context, absl::InvalidArgumentError("tensor with wrong shape"));
    return;
  }
  if (variable->copy_on_read) {
    TF_Tensor result = MakeTensorLike(tensor);
    copy(context, new TF_Tensor(tensor), new TF_Tensor(result));
    variable->value = result;
  } else {
    variable->value = tensor;
  }
  SetOk(status);
}
// Has the signature of 2.6 to 2.9.
TFPLUG_FAKE_FUNCTION void TF_AssignVariable_2_6(TF_OpKernelContext* context,
                                                int input, int value,
                                                CopyFunction copy,
                                                TF_Status* status) {
  TF_AssignVariable(context, input, value, false, copy, status);
}
TFPLUG_FAKE_FUNCTION void TF_AssignRefVariable(TF_OpKernelContext* context,
                                               int input, int output, int value,
                                               bool, bool validate_shape,
                                               CopyFunction copy,
                                               TF_Status* status) {
  TF_AssignVariable(context, input, value, validate_shape, copy, status);
  if (status->code == capi::TF_OK) {
    GetOutputSlot(context, output).tensor =
        GetInputSlot(context, input).variable->value;
  }
}
TFPLUG_FAKE_FUNCTION void TF_AssignUpdateVariable(
    TF_OpKernelContext* context, int input, int value, int op, int,
    CopyFunction copy,
    void (*update)(TF_OpKernelContext*, TF_Tensor*, TF_Tensor*, int),
    TF_Status* status) {
  constexpr char kName[] = "TF_AssignUpdateVariable";
  if (GetInputSlot(context, input).variable == nullptr) {
    AbortLikeTensorFlow(kName, "the variable does not exist");
  }
  const auto variable = FindVariable(kName, context, input);
  if (variable == nullptr) return;
  const TF_Tensor& tensor = InputTensor(context, value);
  if (variable->value->dims != tensor.dims) {
    FailRun(context, absl::InvalidArgumentError("shapes must be equal"));
    return;
  }
  PrepareToUpdate(context, *variable, copy);
  update(context, new TF_Tensor(*variable->value), new TF_Tensor(tensor), op);
  SetOk(status);
}
// If the variable does not exist, fails the run and sets the status to OK.
TFPLUG_FAKE_FUNCTION void TF_MaybeLockVariableInputMutexesInOrder(
    TF_OpKernelContext* context, bool do_lock, bool, const int* const inputs,
    size_t len, CopyFunction, TF_VariableInputLockHolder** holder,
    TF_Status* status) {
  if (Fault::Hits("TF_MaybeLockVariableInputMutexesInOrder", status)) return;
  *holder = new TF_VariableInputLockHolder;
  for (size_t i = 0; i < len; ++i) {
    const auto variable = GetInputSlot(context, inputs[i]).variable;
    if (variable == nullptr) {
      FailRun(context, absl::InternalError("Invalid variable reference."));
      continue;
    }
    if (do_lock) ++variable->locks;
    (*holder)->variables.push_back(variable);
  }
  SetOk(status);
}
TFPLUG_FAKE_FUNCTION void TF_ReleaseVariableInputLockHolder(
    TF_VariableInputLockHolder* holder) {
  if (holder == nullptr) return;
  for (const auto& variable : holder->variables) --variable->locks;
  delete holder;
}
// Does not set the status, as in 2.12; newer releases set it to OK.
TFPLUG_FAKE_FUNCTION void TF_GetInputTensorFromVariable(
    TF_OpKernelContext* context, int input, bool, bool, bool sparse,
    CopyFunction copy, TF_Tensor** out, TF_Status*) {
  const auto variable =
      FindVariable("TF_GetInputTensorFromVariable", context, input);
  if (variable == nullptr) return;
  if (sparse) variable->copy_on_read = true;
  PrepareToUpdate(context, *variable, copy);
  *out = new TF_Tensor(*variable->value);
}
TFPLUG_FAKE_FUNCTION void TF_OpKernelContext_ForwardRefInputToRefOutput(
    TF_OpKernelContext* context, int32_t input, int32_t output) {
  if (!IsInput(context, input) || !IsOutput(context, output)) {
    AbortLikeTensorFlow("TF_OpKernelContext_ForwardRefInputToRefOutput",
                        "index out of range");
  }
  GetOutputSlot(context, output).tensor = GetInputSlot(context, input).tensor;
}
TFPLUG_FAKE_FUNCTION void TF_TemporaryVariable(
    TF_OpKernelContext* context, TF_DataType dtype, const int64_t* dims,
    int num_dims, capi::TF_StringView*,
    void (*allocate)(TF_OpKernelContext*, TF_Tensor*, TF_DataType,
                     const int64_t*, int, TF_Status*),
    TF_Status* status) {
  if (Fault::Hits("TF_TemporaryVariable")) {
    FailRun(context,
            absl::ResourceExhaustedError("injected into TF_TemporaryVariable"));
    return;
  }
  TF_Tensor tensor = MakeTensor(capi::TF_FLOAT, {0});
  allocate(context, &tensor, dtype, dims, num_dims, status);
  if (status->code != capi::TF_OK) return FailRun(context, ReadStatus(*status));
  GetOutputSlot(context, 0).tensor = tensor;
}
TFPLUG_FAKE_FUNCTION void TF_DestroyTemporaryVariable(
    TF_OpKernelContext* context, const int input, capi::TF_StringView*,
    TF_Status* status) {
  if (Fault::Hits("TF_DestroyTemporaryVariable", status)) return;
  if (!IsInput(context, input)) {
    TF_SetStatus(status, capi::TF_INVALID_ARGUMENT, "index out of bounds");
    return;
  }
  GetOutputSlot(context, 0).tensor = GetInputSlot(context, input).tensor;
  SetOk(status);
}
TFPLUG_FAKE_FUNCTION void TF_AddNVariant(TF_OpKernelContext* context,
                                         void (*add)(TF_OpKernelContext*,
                                                     TF_Tensor*, TF_Tensor*,
                                                     TF_Tensor*),
                                         TF_Status* status) {
  if (Fault::Hits("TF_AddNVariant", status)) return;
  TF_Tensor sum = InputTensor(context, 0);
  for (size_t i = 1; i < context->inputs.size(); ++i) {
    TF_Tensor result = MakeTensorLike(sum);
    add(context, new TF_Tensor(sum), new TF_Tensor(*context->inputs[i].tensor),
        new TF_Tensor(result));
    sum = result;
  }
  if (context->failure.ok()) GetOutputSlot(context, 0).tensor = sum;
  WriteStatus(context->failure, status);
}
TFPLUG_FAKE_FUNCTION void TF_ZerosLikeVariant(
    TF_OpKernelContext* context,
    void (*zeros_like)(TF_OpKernelContext*, TF_Tensor*, TF_Tensor*),
    TF_Status* status) {
  if (Fault::Hits("TF_ZerosLikeVariant", status)) return;
  const TF_Tensor& input = InputTensor(context, 0);
  TF_Tensor result = MakeTensorLike(input);
  zeros_like(context, new TF_Tensor(input), new TF_Tensor(result));
  if (context->failure.ok()) GetOutputSlot(context, 0).tensor = result;
  WriteStatus(context->failure, status);
}
// Deletes the tensors that it passes, as TensorFlow does from 2.22 on.
TFPLUG_FAKE_FUNCTION void TF_AddNVariant_2_22(
    TF_OpKernelContext* context,
    void (*add)(TF_OpKernelContext*, TF_Tensor*, TF_Tensor*, TF_Tensor*),
    TF_Status* status) {
  if (Fault::Hits("TF_AddNVariant", status)) return;
  TF_Tensor sum = InputTensor(context, 0);
  for (size_t i = 1; i < context->inputs.size(); ++i) {
    TF_Tensor value = *context->inputs[i].tensor;
    TF_Tensor result = MakeTensorLike(sum);
    add(context, &sum, &value, &result);
    sum = result;
  }
  if (context->failure.ok()) GetOutputSlot(context, 0).tensor = sum;
  WriteStatus(context->failure, status);
}
TFPLUG_FAKE_FUNCTION void TF_ZerosLikeVariant_2_22(
    TF_OpKernelContext* context,
    void (*zeros_like)(TF_OpKernelContext*, TF_Tensor*, TF_Tensor*),
    TF_Status* status) {
  if (Fault::Hits("TF_ZerosLikeVariant", status)) return;
  TF_Tensor input = InputTensor(context, 0);
  TF_Tensor result = MakeTensorLike(input);
  zeros_like(context, &input, &result);
  if (context->failure.ok()) GetOutputSlot(context, 0).tensor = result;
  WriteStatus(context->failure, status);
}

// Some functions changed with the release.
inline void InstallVariableFunctions(capi::Functions& functions,
                                     Release release) {
  TFPLUG_FAKE_INSTALL(TF_AssignVariable);
  if (release < Release{2, 10}) {
    functions.TF_AssignVariable =
        reinterpret_cast<decltype(functions.TF_AssignVariable)>(
            reinterpret_cast<void (*)()>(&TF_AssignVariable_2_6));
  }
  TFPLUG_FAKE_INSTALL(TF_AssignRefVariable);
  TFPLUG_FAKE_INSTALL(TF_AssignUpdateVariable);
  TFPLUG_FAKE_INSTALL(TF_MaybeLockVariableInputMutexesInOrder);
  TFPLUG_FAKE_INSTALL(TF_ReleaseVariableInputLockHolder);
  TFPLUG_FAKE_INSTALL(TF_GetInputTensorFromVariable);
  TFPLUG_FAKE_INSTALL(TF_OpKernelContext_ForwardRefInputToRefOutput);
  TFPLUG_FAKE_INSTALL(TF_TemporaryVariable);
  TFPLUG_FAKE_INSTALL(TF_DestroyTemporaryVariable);
  TFPLUG_FAKE_INSTALL(TF_AddNVariant);
  TFPLUG_FAKE_INSTALL(TF_ZerosLikeVariant);
  if (!(release < Release{2, 22})) {
    functions.TF_AddNVariant =
        reinterpret_cast<decltype(functions.TF_AddNVariant)>(
            reinterpret_cast<void (*)()>(&TF_AddNVariant_2_22));
    functions.TF_ZerosLikeVariant =
        reinterpret_cast<decltype(functions.TF_ZerosLikeVariant)>(
            reinterpret_cast<void (*)()>(&TF_ZerosLikeVariant_2_22));
  }
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_VARIABLE_FUNCTIONS_H_
