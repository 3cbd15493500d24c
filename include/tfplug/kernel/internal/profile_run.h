// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_PROFILE_RUN_H_
#define TFPLUG_KERNEL_INTERNAL_PROFILE_RUN_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/profiling.h"
#include "tfplug/kernel/internal/kernel_lifetime.h"
#include "tfplug/kernel/internal/report_failure.h"
#include "tfplug/kernel/internal/run_cache.h"
#include "tfplug/kernel/kernel_context.h"

#pragma GCC visibility push(hidden)

namespace tfplug::kernel_internal {

// Records the run of a kernel from construction to destruction, if a profile is
// recorded.
class ScopedLaunch {
 public:
  ScopedLaunch(capi::TF_OpKernelContext* context, const RunCache& cache,
               OpsFunction ops)
      : op_(cache.op() != nullptr ? cache.op() : ops().c_str()),
        functions_(internal::ActiveProfiling()) {
    if (functions_ == nullptr) return;
    // TensorFlow may destroy the context before the call of an asynchronous
    // kernel returns.
    step_ = internal::tensorflow.TF_StepId(context);
    if (internal::tensorflow.TF_GetOpKernelName != nullptr) {
      const capi::TF_StringView name =
          internal::tensorflow.TF_GetOpKernelName(context);
      node_.assign(name.data, name.len);
    }
    functions_->begin_launch(launch_);
  }
  ScopedLaunch(const ScopedLaunch&) = delete;
  ScopedLaunch& operator=(const ScopedLaunch&) = delete;
  ~ScopedLaunch() {
    if (functions_ == nullptr) return;
    functions_->end_launch(launch_, op_, node_, step_);
  }

 private:
  const char* const op_;
  const internal::ProfilingFunctions* const functions_;
  std::string node_;
  int64_t step_ = 0;
  internal::LaunchRecord launch_;
};

// Implements compute_func for a kernel that is null, and while a profile is
// recorded. `Base` is tfplug::Kernel: with its virtual function, this code is
// not repeated for each kernel.
template <class Base>
[[gnu::cold, gnu::noinline]] void ProfileRun(
    Base* kernel, capi::TF_OpKernelContext* c_context,
    OpsFunction ops) noexcept {
  if (kernel == nullptr) return FailUnconstructed(c_context, ops);
  auto& cache = internal::Access::run_cache<Base>(*kernel);
  const ScopedLaunch launch(c_context, cache, ops);
  KernelContext context(c_context, cache);
  absl::Status result;
  TFPLUG_INTERNAL_TRY { result = kernel->Compute(context); }
  TFPLUG_INTERNAL_CATCH_ALL { result = internal::CurrentException(); }
  if (!HasSucceeded(context, result)) FailRun(context, std::move(result), ops);
}

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_PROFILE_RUN_H_
