// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_FAULT_CORE_VARIABLES_H_
#define TFPLUG_TESTS_FAULT_CORE_VARIABLES_H_

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "fault_core/run.h"

namespace tfplug::capi {

struct TF_VariableInputLockHolder {
  std::vector<std::shared_ptr<TF_OpKernelContext::Variable>> variables;
  static inline std::atomic<int64_t> live{0};
};

}  // namespace tfplug::capi

// Variables as core has them in 2.6 to 2.18: where they fail, they tell the
// context and leave the status alone.
namespace tfplug::testing {

using capi::TF_VariableInputLockHolder;
using CopyFunction = void (*)(TF_OpKernelContext*, TF_Tensor*, TF_Tensor*);
using Variable = TF_OpKernelContext::Variable;

inline int64_t LiveLockCount() { return TF_VariableInputLockHolder::live; }

// The variable of input `i`, or null with the context failed.
inline std::shared_ptr<Variable> LookUp(const char* function,
                                        TF_OpKernelContext* ctx, int i) {
  if (Fault::Hits(function)) {
    FailContext(ctx, absl::ResourceExhaustedError(
                         std::string("injected into ") + function));
    return nullptr;
  }
  const auto found = ctx->variables.find(i);
  if (found == ctx->variables.end() || found->second == nullptr) {
    FailContext(ctx, absl::NotFoundError("Resource does not exist"));
    return nullptr;
  }
  return found->second;
}

// Before a change in place: a value that somebody else reads is copied.
inline void PrepareToUpdate(TF_OpKernelContext* ctx, Variable& variable,
                            CopyFunction copy) {
  TF_Tensor& value = *variable.value;
  if (!variable.copy_on_read && value.buffer.use_count() == 1) return;
  TF_Tensor made = MakeTensor(value.dtype, value.dims);
  copy(ctx, new TF_Tensor(value), new TF_Tensor(made));
  value = made;
}

TFPLUG_TESTING_CORE_FUNCTION void TF_AssignVariable(TF_OpKernelContext* ctx,
                                                    int input, int value,
                                                    bool validate_shape,
                                                    CopyFunction copy,
                                                    TF_Status* status) {
  const auto variable = LookUp("TF_AssignVariable", ctx, input);
  if (variable == nullptr) return;
  const TF_Tensor& given = *ctx->inputs[static_cast<size_t>(value)];
  if (validate_shape && variable->value &&
      variable->value->dims != given.dims) {
    FailContext(ctx, absl::InvalidArgumentError("tensor with wrong shape"));
    return;
  }
  if (variable->copy_on_read) {
    TF_Tensor made = MakeTensor(given.dtype, given.dims);
    copy(ctx, new TF_Tensor(given), new TF_Tensor(made));
    variable->value = made;
  } else {
    variable->value = given;
  }
  TF_SetStatus(status, capi::TF_OK, "");
}
// As 2.6 to 2.9 have it.
TFPLUG_TESTING_CORE_FUNCTION void TF_AssignVariable_2_6(TF_OpKernelContext* ctx,
                                                        int input, int value,
                                                        CopyFunction copy,
                                                        TF_Status* status) {
  TF_AssignVariable(ctx, input, value, false, copy, status);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_AssignRefVariable(
    TF_OpKernelContext* ctx, int input, int output, int value, bool,
    bool validate_shape, CopyFunction copy, TF_Status* status) {
  TF_AssignVariable(ctx, input, value, validate_shape, copy, status);
  if (status->code == capi::TF_OK) {
    OutputOf(ctx, output) = *ctx->variables[input]->value;
  }
}
TFPLUG_TESTING_CORE_FUNCTION void TF_AssignUpdateVariable(
    TF_OpKernelContext* ctx, int input, int value, int op, int,
    CopyFunction copy,
    void (*update)(TF_OpKernelContext*, TF_Tensor*, TF_Tensor*, int),
    TF_Status* status) {
  if (ctx->variables[input] == nullptr)
    FakeWouldAbort("TF_AssignUpdateVariable");
  const auto variable = LookUp("TF_AssignUpdateVariable", ctx, input);
  if (variable == nullptr) return;
  const TF_Tensor& given = *ctx->inputs[static_cast<size_t>(value)];
  if (variable->value->dims != given.dims) {
    FailContext(ctx, absl::InvalidArgumentError("shapes must be equal"));
    return;
  }
  PrepareToUpdate(ctx, *variable, copy);
  update(ctx, new TF_Tensor(*variable->value), new TF_Tensor(given), op);
  TF_SetStatus(status, capi::TF_OK, "");
}
// Without the variable, core fails the context and says OK.
TFPLUG_TESTING_CORE_FUNCTION void TF_MaybeLockVariableInputMutexesInOrder(
    TF_OpKernelContext* ctx, bool do_lock, bool, const int* const inputs,
    size_t len, CopyFunction, TF_VariableInputLockHolder** holder,
    TF_Status* status) {
  if (Fault::Hits("TF_MaybeLockVariableInputMutexesInOrder", status)) return;
  *holder = new TF_VariableInputLockHolder;
  ++TF_VariableInputLockHolder::live;
  for (size_t i = 0; i < len; ++i) {
    const auto variable = ctx->variables[inputs[i]];
    if (variable == nullptr) {
      FailContext(ctx, absl::InternalError("Invalid variable reference."));
      continue;
    }
    if (do_lock) ++variable->locks;
    (*holder)->variables.push_back(variable);
  }
  TF_SetStatus(status, capi::TF_OK, "");
}
TFPLUG_TESTING_CORE_FUNCTION void TF_ReleaseVariableInputLockHolder(
    TF_VariableInputLockHolder* holder) {
  if (holder == nullptr) return;
  for (const auto& variable : holder->variables) --variable->locks;
  --TF_VariableInputLockHolder::live;
  delete holder;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_GetInputTensorFromVariable(
    TF_OpKernelContext* ctx, int input, bool, bool, bool sparse,
    CopyFunction copy, TF_Tensor** out, TF_Status*) {
  const auto variable = LookUp("TF_GetInputTensorFromVariable", ctx, input);
  if (variable == nullptr) return;
  if (sparse) variable->copy_on_read = true;
  PrepareToUpdate(ctx, *variable, copy);
  *out = new TF_Tensor(*variable->value);
  // 2.12 leaves it at that; newer ones clear the status.
}
TFPLUG_TESTING_CORE_FUNCTION void TF_OpKernelContext_ForwardRefInputToRefOutput(
    TF_OpKernelContext* ctx, int32_t input, int32_t output) {
  if (!IsInput(ctx, input) || !IsOutput(ctx, output)) {
    FakeWouldAbort("TF_OpKernelContext_ForwardRefInputToRefOutput");
  }
  OutputOf(ctx, output) = ctx->inputs[static_cast<size_t>(input)];
}
TFPLUG_TESTING_CORE_FUNCTION void TF_TemporaryVariable(
    TF_OpKernelContext* ctx, capi::TF_DataType dtype, const int64_t* dims,
    int num_dims, capi::TF_StringView*,
    void (*allocate)(TF_OpKernelContext*, TF_Tensor*, capi::TF_DataType,
                     const int64_t*, int, TF_Status*),
    TF_Status* status) {
  if (Fault::Hits("TF_TemporaryVariable")) {
    FailContext(ctx, absl::ResourceExhaustedError("injected"));
    return;
  }
  TF_Tensor tensor = MakeTensor(capi::TF_FLOAT, {0});
  allocate(ctx, &tensor, dtype, dims, num_dims, status);
  if (status->code != capi::TF_OK) return FailContext(ctx, FromCore(*status));
  OutputOf(ctx, 0) = tensor;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_DestroyTemporaryVariable(
    TF_OpKernelContext* ctx, const int input, capi::TF_StringView*,
    TF_Status* status) {
  if (Fault::Hits("TF_DestroyTemporaryVariable", status)) return;
  if (!IsInput(ctx, input)) {
    TF_SetStatus(status, capi::TF_INVALID_ARGUMENT, "index out of bounds");
    return;
  }
  OutputOf(ctx, 0) = ctx->inputs[static_cast<size_t>(input)];
  TF_SetStatus(status, capi::TF_OK, "");
}
TFPLUG_TESTING_CORE_FUNCTION void TF_AddNVariant(
    TF_OpKernelContext* ctx,
    void (*add)(TF_OpKernelContext*, TF_Tensor*, TF_Tensor*, TF_Tensor*),
    TF_Status* status) {
  if (Fault::Hits("TF_AddNVariant", status)) return;
  TF_Tensor sum = *ctx->inputs[0];
  for (size_t i = 1; i < ctx->inputs.size(); ++i) {
    TF_Tensor made = MakeTensor(sum.dtype, sum.dims);
    add(ctx, new TF_Tensor(sum), new TF_Tensor(*ctx->inputs[i]),
        new TF_Tensor(made));
    sum = made;
  }
  if (ctx->status.ok()) OutputOf(ctx, 0) = sum;
  ToCore(ctx->status, status);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_ZerosLikeVariant(
    TF_OpKernelContext* ctx,
    void (*zeros_like)(TF_OpKernelContext*, TF_Tensor*, TF_Tensor*),
    TF_Status* status) {
  if (Fault::Hits("TF_ZerosLikeVariant", status)) return;
  TF_Tensor made = MakeTensor(ctx->inputs[0]->dtype, ctx->inputs[0]->dims);
  zeros_like(ctx, new TF_Tensor(*ctx->inputs[0]), new TF_Tensor(made));
  if (ctx->status.ok()) OutputOf(ctx, 0) = made;
  ToCore(ctx->status, status);
}

// `has_validate_shape`: as from 2.10 on.
inline void InstallVariableFunctions(capi::Functions& core,
                                     bool has_validate_shape) {
  core.TF_AssignVariable = &TF_AssignVariable;
  if (!has_validate_shape) {
    core.TF_AssignVariable = reinterpret_cast<decltype(core.TF_AssignVariable)>(
        reinterpret_cast<void (*)()>(&TF_AssignVariable_2_6));
  }
  core.TF_AssignRefVariable = &TF_AssignRefVariable;
  core.TF_AssignUpdateVariable = &TF_AssignUpdateVariable;
  core.TF_MaybeLockVariableInputMutexesInOrder =
      &TF_MaybeLockVariableInputMutexesInOrder;
  core.TF_ReleaseVariableInputLockHolder = &TF_ReleaseVariableInputLockHolder;
  core.TF_GetInputTensorFromVariable = &TF_GetInputTensorFromVariable;
  core.TF_OpKernelContext_ForwardRefInputToRefOutput =
      &TF_OpKernelContext_ForwardRefInputToRefOutput;
  core.TF_TemporaryVariable = &TF_TemporaryVariable;
  core.TF_DestroyTemporaryVariable = &TF_DestroyTemporaryVariable;
  core.TF_AddNVariant = &TF_AddNVariant;
  core.TF_ZerosLikeVariant = &TF_ZerosLikeVariant;
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTS_FAULT_CORE_VARIABLES_H_
