// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_ASYNC_KERNEL_TABLE_H_
#define TFPLUG_KERNEL_INTERNAL_ASYNC_KERNEL_TABLE_H_

#include <new>
#include <utility>

#include "absl/status/status.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/kernel/async_run.h"
#include "tfplug/kernel/internal/async_state.h"
#include "tfplug/kernel/internal/kernel_functions.h"
#include "tfplug/kernel/internal/kernel_lifetime.h"
#include "tfplug/kernel/internal/profile_run.h"
#include "tfplug/kernel/internal/report_failure.h"

#pragma GCC visibility push(hidden)

namespace tfplug::kernel_internal {

// Runs `kernel`, a Base, through `compute`, which takes an AsyncRun&.
template <class Base, class Compute>
[[gnu::always_inline]] inline void RunAsync(
    Base& kernel, capi::TF_OpKernelContext* c_context,
    capi::TF_AsyncOpKernelDoneCallback* done, OpsFunction ops,
    Compute compute) {
  AsyncState* const state = new (std::nothrow)
      AsyncState(c_context, internal::Access::run_cache<Base>(kernel), done,
                 internal::Access::done_callback<Base>(kernel), ops);
  if (ABSL_PREDICT_FALSE(state == nullptr)) {
    KernelContext context(c_context);
    FailRun(context, absl::ResourceExhaustedError("out of host memory"), ops);
    if (done != nullptr)
      internal::tensorflow.TF_RunAsyncOpKernelDoneCallback(done);
    return;
  }
  AsyncRun run(state);
  absl::Status result;
  TFPLUG_INTERNAL_TRY { result = compute(run); }
  TFPLUG_INTERNAL_CATCH_ALL { result = internal::CurrentException(); }
  if (run) {
    run.Finish(result);
  } else if (!result.ok()) {
    internal::LogFailure("compute_async_func", result);
  }
  state->ReturnToCaller();
}

// Implements compute_async_func for a kernel that is null, and while a profile
// is recorded: see ProfileRun. Records the call of ComputeAsync: neither the
// asynchronous run, nor what TensorFlow does in its done callback, which may
// run other ops and destroy the kernel.
template <class Base>
[[gnu::cold, gnu::noinline]] void ProfileRunAsync(
    Base* kernel, capi::TF_OpKernelContext* c_context,
    capi::TF_AsyncOpKernelDoneCallback* done, OpsFunction ops) {
  if (kernel == nullptr) {
    FailUnconstructed(c_context, ops);
    if (done != nullptr)
      internal::tensorflow.TF_RunAsyncOpKernelDoneCallback(done);
    return;
  }
  RunAsync(*kernel, c_context, done, ops, [&](AsyncRun& run) {
    const ScopedLaunch launch(c_context,
                              internal::Access::run_cache<Base>(*kernel), ops);
    return kernel->ComputeAsync(run);
  });
}

// The C functions of KernelT. Its base class tfplug::AsyncKernel, which refers
// to this table, passes itself as Base.
template <class KernelT, class Base>
struct AsyncKernelTable : KernelLifetime<KernelT, Base> {
  // The result type of T's hook, if it can be called from outside.
  template <class T>
  using ResultOf =
      decltype(std::declval<T&>().T::ComputeAsync(std::declval<AsyncRun&>()));

  static void compute_async_func(void* kernel,
                                 capi::TF_OpKernelContext* c_context,
                                 capi::TF_AsyncOpKernelDoneCallback* done) {
    constexpr OpsFunction kOps = &RegisteredOps<KernelT>;
    if (ABSL_PREDICT_FALSE(internal::IsNullOrProfiled(kernel))) {
      return ProfileRunAsync<Base>(static_cast<KernelT*>(kernel), c_context,
                                   done, kOps);
    }
    KernelT& self = *static_cast<KernelT*>(kernel);
    RunAsync<Base>(self, c_context, done, kOps, [&](AsyncRun& run) {
      return self.KernelT::ComputeAsync(run);
    });
  }

  // Blocks until the run is finished, for releases without asynchronous kernels.
  static void compute_func(void* kernel, capi::TF_OpKernelContext* c_context) {
    compute_async_func(kernel, c_context, nullptr);
  }

  static constexpr KernelFunctions kFunctions = {
      &KernelLifetime<KernelT, Base>::create_func, &compute_func,
      &KernelLifetime<KernelT, Base>::delete_func, &compute_async_func};
};

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_ASYNC_KERNEL_TABLE_H_
