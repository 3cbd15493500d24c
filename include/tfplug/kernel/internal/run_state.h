// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_RUN_STATE_H_
#define TFPLUG_KERNEL_INTERNAL_RUN_STATE_H_

#include <cstdint>
#include <string>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/status.h"
#include "tfplug/kernel/internal/run_cache.h"

#pragma GCC visibility push(hidden)

namespace tfplug::kernel_internal {

// Tells the compiler that `failure` is not OK, so that it omits the code for a
// StatusOr constructed from an OK status.
[[gnu::always_inline]] inline absl::Status AssumeError(absl::Status failure) {
  if (failure.ok()) __builtin_unreachable();
  return failure;
}

// The state of one run of a kernel: TensorFlow's handle, a TF_Status for all C
// calls of the run, and the set of outputs that the run still has to set.
class RunState {
 public:
  explicit RunState(capi::TF_OpKernelContext* context)
      : context_(context),
        status_(internal::tensorflow.TF_NewStatus()),
        unset_outputs_(RunCache::OutputsOf(context)) {}
  // Takes status and outputs from `cache` unless another run holds it.
  RunState(capi::TF_OpKernelContext* context, RunCache& cache)
      : context_(context) {
    if (ABSL_PREDICT_TRUE(cache.TryAcquire(context))) {
      cache_ = &cache;
      status_ = cache.status();
      unset_outputs_ = cache.outputs();
    } else {
      status_ = internal::tensorflow.TF_NewStatus();
      unset_outputs_ = RunCache::OutputsOf(context);
    }
  }
  RunState(const RunState&) = delete;
  RunState& operator=(const RunState&) = delete;
  ~RunState() {
    if (ABSL_PREDICT_TRUE(cache_ != nullptr)) {
      cache_->Release();
    } else {
      internal::tensorflow.TF_DeleteStatus(status_);
    }
  }

  capi::TF_OpKernelContext* context() const { return context_; }

  // Returns the status, which is OK before each call of a C function;
  // TakeFailure resets it after a failed call.
  capi::TF_Status* status() const { return status_; }
  bool status_ok() const {
    return internal::tensorflow.TF_GetCode(status_) == capi::TF_OK;
  }
  // Returns the error in `status()` and resets it. INTERNAL with `message` if a
  // call failed without setting the status.
  [[gnu::always_inline]] absl::Status TakeFailure(const char* message) {
    return AssumeError(TakeFailureSlowly(message));
  }

  // ---- Outputs: a bit for each of the first 64 -----------------------------

  bool HasOutput(int i) const {
    return ABSL_PREDICT_TRUE(IsUnset(i)) || IsOutput(i);
  }
  // Returns false after MarkOutput, and for outputs beyond the 64th.
  bool IsUnset(int i) const {
    return i >= 0 && i < 64 && (unset_outputs_ >> i & 1) != 0;
  }
  void MarkOutput(int i) {
    if (i >= 0 && i < 64) unset_outputs_ &= ~(uint64_t{1} << i);
  }
  // Outputs beyond the 64th count as set.
  bool HasAllOutputs() const { return unset_outputs_ == 0; }
  // Returns the error of a run that returned OK without setting an output.
  [[gnu::cold, gnu::noinline]] absl::Status MissingOutput() const {
    return absl::InternalError(
        "the kernel returned OK without setting output " +
        std::to_string(__builtin_ctzll(unset_outputs_)) +
        "; set every output on every path, or call AllowUnsetOutput");
  }

 private:
  // Is rarely called, because an output is set once.
  [[gnu::cold, gnu::noinline]] bool IsOutput(int i) const {
    return i >= 0 && i < internal::tensorflow.TF_NumOutputs(context_);
  }
  [[gnu::cold, gnu::noinline]] absl::Status TakeFailureSlowly(
      const char* message) {
    absl::Status failure = ToStatus(status_);
    internal::tensorflow.TF_SetStatus(status_, capi::TF_OK, "");
    return failure.ok() ? absl::InternalError(message) : failure;
  }

  capi::TF_OpKernelContext* const context_;
  RunCache* cache_ = nullptr;  // Null if this state owns status_.
  capi::TF_Status* status_;
  uint64_t unset_outputs_;
};

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_RUN_STATE_H_
