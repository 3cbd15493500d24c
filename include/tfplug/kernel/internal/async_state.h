// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_ASYNC_STATE_H_
#define TFPLUG_KERNEL_INTERNAL_ASYNC_STATE_H_

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/kernel/internal/report_failure.h"
#include "tfplug/kernel/kernel_context.h"

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// Returns whether TensorFlow's done callback can be copied, to be called after
// compute_async_func has returned.
//
// In all releases with asynchronous kernels (2.13 to 2.22), a
// TF_AsyncOpKernelDoneCallback* is the address of a std::function<void()> that
// is destroyed when compute_async_func returns, so a run that continues needs a
// copy. Copying is safe with the C++ library of TensorFlow's wheels and in
// these releases; otherwise TensorFlow's thread has to wait for the run.
inline bool HasCopyableDoneCallback(const char* version) {
  char* rest = nullptr;
  const long major = std::strtol(version, &rest, 10);
  if (major != 2 || *rest != '.') return false;
  return std::strtol(rest + 1, nullptr, 10) <= 22;
}
inline bool CanCopyDoneCallback() {
#if defined(__GLIBCXX__)
  static const bool can_copy = tensorflow.TF_Version != nullptr &&
                               HasCopyableDoneCallback(tensorflow.TF_Version());
  return can_copy;
#else
  return false;
#endif
}

// One asynchronous run. It ends when both TensorFlow's call has returned
// (ReturnToCaller) and the author has finished the run (Finish); the later of
// the two calls TensorFlow's done callback and deletes this object.
class AsyncState {
 public:
  // `done` is null if TensorFlow called compute_func, which blocks until the
  // run is finished.
  AsyncState(capi::TF_OpKernelContext* context, RunCache& cache,
             capi::TF_AsyncOpKernelDoneCallback* done, OpsFunction ops)
      : context_(std::in_place, context, cache), done_(done), ops_(ops) {
    if (ABSL_PREDICT_FALSE(done == nullptr || !CanCopyDoneCallback())) {
      waiter_.emplace();
    }
  }

  KernelContext& context() { return *context_; }

  // Called once, on any thread.
  void Finish(const absl::Status& result) noexcept {
    if (!HasSucceeded(*context_, result)) FailRun(*context_, result, ops_);
    // TensorFlow may destroy its context in the done callback.
    context_.reset();
    Progress expected = kRunning;
    if (ABSL_PREDICT_FALSE(waiter_.has_value())) {
      std::lock_guard<std::mutex> lock(waiter_->mutex);
      progress_.store(kFinished);
      waiter_->finished.notify_one();
    } else if (!progress_.compare_exchange_strong(expected, kFinished)) {
      tensorflow.TF_RunAsyncOpKernelDoneCallback(
          reinterpret_cast<capi::TF_AsyncOpKernelDoneCallback*>(&done_copy_));
      delete this;
    }
  }

  // Called on TensorFlow's thread, before compute_async_func returns.
  void ReturnToCaller() noexcept {
    if (ABSL_PREDICT_FALSE(waiter_.has_value())) {
      std::unique_lock<std::mutex> lock(waiter_->mutex);
      waiter_->finished.wait(lock,
                             [this] { return progress_.load() == kFinished; });
    } else if (progress_.load() != kFinished) {
      done_copy_ = *reinterpret_cast<const DoneFunction*>(done_);
      Progress expected = kRunning;
      if (progress_.compare_exchange_strong(expected, kReturned)) return;
    }
    if (done_ != nullptr) tensorflow.TF_RunAsyncOpKernelDoneCallback(done_);
    delete this;
  }

 private:
  using DoneFunction = std::function<void()>;
  enum Progress { kRunning, kReturned, kFinished };
  struct Waiter {
    std::mutex mutex;
    std::condition_variable finished;
  };

  std::optional<KernelContext> context_;
  capi::TF_AsyncOpKernelDoneCallback* const done_;
  const OpsFunction ops_;
  DoneFunction done_copy_;
  std::atomic<Progress> progress_{kRunning};
  std::optional<Waiter> waiter_;  // Set if TensorFlow's thread has to wait.
};

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_ASYNC_STATE_H_
