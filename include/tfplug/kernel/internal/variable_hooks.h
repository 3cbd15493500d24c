// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_VARIABLE_HOOKS_H_
#define TFPLUG_KERNEL_INTERNAL_VARIABLE_HOOKS_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/release.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/kernel/internal/report_failure.h"
#include "tfplug/kernel/kernel_context.h"
#include "tfplug/kernel/tensor.h"

#pragma GCC visibility push(hidden)

// While a C function works on a variable, TensorFlow calls back into device
// code, on the same thread and with tensors that the callback owns (see
// DeletesTensorsOfLists for the exception). The
// callbacks have no status: failures are reported to the context, which keeps
// the first one.
namespace tfplug::kernel_internal {

// Returns the OpsFunction of callbacks: the C API does not pass the op to them.
inline std::string& UnknownOps() {
  static auto* const none = new std::string;
  return *none;
}

// Calls hook(context, tensors...). A null tensor fails the run instead.
template <class Hook, class... Tensors>
void RunVariableHook(capi::TF_OpKernelContext* c_context, Hook hook,
                     Tensors... c_tensors) noexcept {
  KernelContext context(c_context);
  absl::Status result;
  TFPLUG_INTERNAL_TRY {
    // The lambda owns the tensors, so they are deleted even after a failure.
    result = [&](auto... tensors) -> absl::Status {
      if (!(static_cast<bool>(tensors) && ...)) {
        return absl::InternalError("TensorFlow passed a null tensor");
      }
      return hook(context, tensors...);
    }(Tensor(c_tensors)...);
  }
  TFPLUG_INTERNAL_CATCH_ALL { result = internal::CurrentException(); }
  if (ABSL_PREDICT_FALSE(!result.ok())) FailRun(context, result, &UnknownOps);
}

// Returns whether TensorFlow deletes the tensors that it passes to
// binary_add_func and zeros_like_func, which up to 2.18 belong to the callback.
// 2.22.0rc0 and a nightly of 2.23 do, although their header says the opposite.
inline bool DeletesTensorsOfLists(internal::Release release) {
  return release.major > 2 || (release.major == 2 && release.minor >= 22);
}

// Leaves the tensors of lists to TensorFlow where TensorFlow deletes them.
template <size_t n>
class TensorsOfLists {
 public:
  explicit TensorsOfLists(Tensor* const (&tensors)[n]) {
    std::copy_n(tensors, n, tensors_);
  }
  ~TensorsOfLists() {
    if (!DeletesTensorsOfLists(internal::CurrentRelease())) return;
    for (Tensor* tensor : tensors_) static_cast<void>(tensor->release());
  }
  TensorsOfLists(const TensorsOfLists&) = delete;
  TensorsOfLists& operator=(const TensorsOfLists&) = delete;

 private:
  Tensor* tensors_[n];
};

// The callbacks. They call the author's Code, a VariableCode (variables.h).
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
          const TensorsOfLists tensors({&a, &b, &out});
          return Code::Add(c, a, b, out);
        },
        a, b, out);
  }
  static void zeros_like_func(capi::TF_OpKernelContext* context,
                              capi::TF_Tensor* input, capi::TF_Tensor* out) {
    RunVariableHook(
        context,
        [](KernelContext& c, Tensor& input, Tensor& out) {
          const TensorsOfLists tensors({&input, &out});
          return Code::ZerosLike(c, input, out);
        },
        input, out);
  }
};

// The argument plugin_allocator of TF_TemporaryVariable: allocates the variable
// in device memory.
inline void AllocateTemporary(capi::TF_OpKernelContext* c_context,
                              capi::TF_Tensor* tensor, capi::TF_DataType dtype,
                              const int64_t* dims, int num_dims,
                              capi::TF_Status* status) {
  internal::Guard(status, "temporary variable", [&]() -> absl::Status {
    KernelContext context(c_context);
    const Shape shape(absl::MakeConstSpan(dims, static_cast<size_t>(num_dims)));
    const auto temp = context.AllocateTemp(static_cast<DataType>(dtype), shape);
    if (!temp.ok()) return temp.status();
    OwnedStatus bitcast;
    internal::tensorflow.TF_TensorBitcastFrom(temp->get(), dtype, tensor, dims,
                                              num_dims, bitcast.get());
    return bitcast.ToStatus();
  });
}

// Calls a C function that reports failures to the context and sets the status
// only on success, so a status that still has its initial value means
// failure.
template <class Function>
absl::Status CallOnVariable(KernelContext& context, Function call) {
  constexpr char kUnchanged[] =
      "TensorFlow has already failed the run, with a message of its own";
  RunState& state = internal::Access::state(context);
  internal::tensorflow.TF_SetStatus(state.status(), capi::TF_INTERNAL,
                                    kUnchanged);
  call(state.status());
  if (state.status_ok()) return absl::OkStatus();
  return state.TakeFailure(kUnchanged);
}

// Does the same as CallOnVariable for a function that sets output `output`.
template <class Function>
absl::Status SetOutputWith(KernelContext& context, int output, Function call) {
  absl::Status result = CallOnVariable(context, call);
  if (result.ok()) internal::Access::state(context).MarkOutput(output);
  return result;
}

// Does the same as CallOnVariable for TF_AddNVariant and TF_ZerosLikeVariant,
// which set output 0. They also report failures to the context. Up to 2.13 they
// do not set the status on success either, so an unchanged status counts as
// success here; after a failure, the error in the context fails the run.
template <class Function>
absl::Status SetVariant(KernelContext& context, Function call) {
  RunState& state = internal::Access::state(context);
  call(state.status());
  if (!state.status_ok()) {
    return state.TakeFailure("TensorFlow has already failed the run");
  }
  state.MarkOutput(0);
  return absl::OkStatus();
}

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_VARIABLE_HOOKS_H_
