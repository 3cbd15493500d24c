// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_ASYNC_STATE_H_
#define TFPLUG_KERNEL_INTERNAL_ASYNC_STATE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "tfplug/base/internal/release.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/kernel/internal/report_failure.h"
#include "tfplug/kernel/kernel_context.h"

#pragma GCC visibility push(hidden)

namespace tfplug::kernel_internal {

// States when TensorFlow destroys the done callback, a std::function<void()>,
// if compute_async_func returns before the run ends.
enum class DoneCallback : uint8_t {
  // TensorFlow destroys it, so the run calls a copy. Copying is safe with the
  // C++ library of TensorFlow's wheels.
  kCopy,
  // It belongs to the run: TF_RunAsyncOpKernelDoneCallback deletes it.
  kKeep,
  // Unknown: compute_async_func waits for the end of the run.
  kWait,
};
inline DoneCallback DoneCallbackOf(internal::Release release) {
  if (release.major != 2) return DoneCallback::kWait;
  if (release.minor == 22 || release.minor == 23) return DoneCallback::kKeep;
#if defined(__GLIBCXX__)
  if (release.minor < 22) return DoneCallback::kCopy;
#endif
  return DoneCallback::kWait;
}

// One asynchronous run. It ends when both TensorFlow's call has returned
// (ReturnToCaller) and the author has finished the run (Finish); the later of
// the two calls TensorFlow's done callback and deletes this object.
class AsyncState {
 public:
  // `done` is null if TensorFlow called compute_func, which blocks until the
  // run is finished; `callback` applies otherwise.
  [[gnu::always_inline]] AsyncState(capi::TF_OpKernelContext* context,
                                    RunCache& cache,
                                    capi::TF_AsyncOpKernelDoneCallback* done,
                                    DoneCallback callback, OpsFunction ops)
      : context_(std::in_place, context, cache),
        done_(done),
        ops_(ops),
        callback_(done == nullptr ? DoneCallback::kWait : callback) {
    if (ABSL_PREDICT_FALSE(callback_ == DoneCallback::kWait)) {
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
      internal::tensorflow.TF_RunAsyncOpKernelDoneCallback(
          callback_ == DoneCallback::kKeep
              ? done_
              : reinterpret_cast<capi::TF_AsyncOpKernelDoneCallback*>(
                    &done_copy_));
      delete this;
    }
  }

  // Is called on TensorFlow's thread, before compute_async_func returns.
  void ReturnToCaller() noexcept {
    if (ABSL_PREDICT_FALSE(waiter_.has_value())) {
      std::unique_lock<std::mutex> lock(waiter_->mutex);
      waiter_->finished.wait(lock,
                             [this] { return progress_.load() == kFinished; });
    } else if (progress_.load() != kFinished) {
      if (callback_ == DoneCallback::kCopy) {
        done_copy_ = *reinterpret_cast<const DoneFunction*>(done_);
      }
      Progress expected = kRunning;
      if (progress_.compare_exchange_strong(expected, kReturned)) return;
    }
    if (done_ != nullptr)
      internal::tensorflow.TF_RunAsyncOpKernelDoneCallback(done_);
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
  const DoneCallback callback_;
  DoneFunction done_copy_;
  std::atomic<Progress> progress_{kRunning};
  std::optional<Waiter> waiter_;  // Set if TensorFlow's thread has to wait.
};

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_ASYNC_STATE_H_
