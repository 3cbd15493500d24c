// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_ASYNC_KERNEL_TABLE_H_
#define TFPLUG_KERNEL_INTERNAL_ASYNC_KERNEL_TABLE_H_

#include <new>

#include "tfplug/base/internal/guard.h"
#include "tfplug/kernel/async_kernel.h"
#include "tfplug/kernel/internal/async_state.h"
#include "tfplug/kernel/internal/kernel_failure.h"
#include "tfplug/kernel/internal/kernel_table.h"

namespace tfplug::internal {

template <class KernelT>
struct AsyncKernelTable : KernelLife<KernelT> {
  static void compute_async_func(void* kernel,
                                 capi::TF_OpKernelContext* c_context,
                                 capi::TF_AsyncOpKernelDoneCallback* done) {
    constexpr OpsFunction kOps = &RegisteredOps<KernelT>;
    if (ABSL_PREDICT_FALSE(kernel == nullptr)) {
      FailNeverMade(c_context, kOps);
      if (done != nullptr) tensorflow.TF_RunAsyncOpKernelDoneCallback(done);
      return;
    }
    KernelT& self = *static_cast<KernelT*>(kernel);
    AsyncState* const state = new (std::nothrow)
        AsyncState(c_context, self.tfplug::AsyncKernel::run_cache_, done, kOps);
    if (ABSL_PREDICT_FALSE(state == nullptr)) {
      KernelContext context(c_context);
      FailRun(context, absl::ResourceExhaustedError("no host memory"), kOps);
      if (done != nullptr) tensorflow.TF_RunAsyncOpKernelDoneCallback(done);
      return;
    }
    AsyncRun run(state);
    absl::Status result;
    TFPLUG_INTERNAL_TRY { result = self.KernelT::ComputeAsync(run); }
    TFPLUG_INTERNAL_CATCH_ALL { result = CurrentException(); }
    if (run) {
      run.Finish(result);
    } else if (!result.ok()) {
      LogFailure("compute_async_func", result);
    }
    state->Return();
  }

  // Where core has no asynchronous kernels: waits for the end.
  static void compute_func(void* kernel, capi::TF_OpKernelContext* c_context) {
    compute_async_func(kernel, c_context, nullptr);
  }

  static constexpr KernelFunctions kFunctions = {
      &KernelLife<KernelT>::create_func, &compute_func,
      &KernelLife<KernelT>::delete_func, &compute_async_func};
};

}  // namespace tfplug::internal

#endif  // TFPLUG_KERNEL_INTERNAL_ASYNC_KERNEL_TABLE_H_
