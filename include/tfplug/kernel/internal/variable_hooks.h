// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_VARIABLE_HOOKS_H_
#define TFPLUG_KERNEL_INTERNAL_VARIABLE_HOOKS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/kernel/internal/kernel_failure.h"
#include "tfplug/kernel/kernel_context.h"
#include "tfplug/kernel/tensor.h"

// Core calls back into device code while it works on a variable, on the same
// thread, with tensors that the callee owns and no word for failure: that goes
// to the context, where core keeps the first one.
namespace tfplug::internal {

inline std::string& NoOps() {
  static auto* const none = new std::string;
  return *none;
}

// Calls hook(context, tensors...) unless core has failed to make a tensor.
template <class Hook, class... Tensors>
void RunVariableHook(capi::TF_OpKernelContext* c_context, Hook hook,
                     Tensors... c_tensors) noexcept {
  KernelContext context(c_context);
  absl::Status result;
  TFPLUG_INTERNAL_TRY {
    // Freed whatever becomes of the hook.
    result = [&](auto... tensors) -> absl::Status {
      if (!(static_cast<bool>(tensors) && ...)) {
        return absl::InternalError("core gave no tensor to work on");
      }
      return hook(context, tensors...);
    }(Tensor(c_tensors)...);
  }
  TFPLUG_INTERNAL_CATCH_ALL { result = CurrentException(); }
  if (ABSL_PREDICT_FALSE(!result.ok())) FailRun(context, result, &NoOps);
}

// The functions that core calls, for the author's Code: see variables.h.
template <class Code>
struct VariableHooks {
  static void copy_func(capi::TF_OpKernelContext* context,
                        capi::TF_Tensor* source, capi::TF_Tensor* dest) {
    RunVariableHook(
        context,
        [](KernelContext& c, Tensor& from, Tensor& to) {
          return Code::Copy(c, from, to);
        },
        source, dest);
  }
  static void update_func(capi::TF_OpKernelContext* context,
                          capi::TF_Tensor* variable, capi::TF_Tensor* value,
                          int op) {
    RunVariableHook(
        context,
        [op](KernelContext& c, Tensor& variable, Tensor& value) {
          return Code::Update(c, static_cast<decltype(Code::kUpdate)>(op),
                              variable, value);
        },
        variable, value);
  }
  static void binary_add_func(capi::TF_OpKernelContext* context,
                              capi::TF_Tensor* a, capi::TF_Tensor* b,
                              capi::TF_Tensor* out) {
    RunVariableHook(
        context,
        [](KernelContext& c, Tensor& a, Tensor& b, Tensor& out) {
          return Code::Add(c, a, b, out);
        },
        a, b, out);
  }
  static void zeros_like_func(capi::TF_OpKernelContext* context,
                              capi::TF_Tensor* input, capi::TF_Tensor* out) {
    RunVariableHook(
        context,
        [](KernelContext& c, Tensor& input, Tensor& out) {
          return Code::ZerosLike(c, input, out);
        },
        input, out);
  }
};

// plugin_allocator: the new temporary variable lies in device memory.
inline void AllocateTemporary(capi::TF_OpKernelContext* c_context,
                              capi::TF_Tensor* tensor, capi::TF_DataType dtype,
                              const int64_t* dims, int num_dims,
                              capi::TF_Status* status) {
  Guard(status, "temporary variable", [&]() -> absl::Status {
    KernelContext context(c_context);
    const Shape shape(absl::MakeConstSpan(dims, static_cast<size_t>(num_dims)));
    const auto made = context.AllocateTemp(static_cast<DataType>(dtype), shape);
    if (!made.ok()) return made.status();
    OwnedStatus bitcast;
    tensorflow.TF_TensorBitcastFrom(made->get(), dtype, tensor, dims, num_dims,
                                    bitcast.get());
    return bitcast.ToStatus();
  });
}

// A call whose failure core reports to the context and not in the status: it
// sets the status on success only, so what it finds there tells.
template <class Call>
absl::Status CallOnVariable(KernelContext& context, Call call) {
  constexpr char kUntouched[] = "core refused, and has failed the run itself";
  capi::TF_Status* const status = context.status();
  tensorflow.TF_SetStatus(status, capi::TF_INTERNAL, kUntouched);
  call(status);
  if (tensorflow.TF_GetCode(status) == capi::TF_OK) return absl::OkStatus();
  return context.Failure(kUntouched);
}

}  // namespace tfplug::internal

#endif  // TFPLUG_KERNEL_INTERNAL_VARIABLE_HOOKS_H_
