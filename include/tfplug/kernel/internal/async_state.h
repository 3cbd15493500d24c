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
#include "tfplug/kernel/internal/kernel_failure.h"
#include "tfplug/kernel/kernel_context.h"

namespace tfplug::internal {

// Whether core's done callback can be kept beyond the call it comes with.
//
// TF_AsyncOpKernelDoneCallback is the address of a std::function<void()> that
// is an argument of the very call, gone when that returns: so in all releases
// with asynchronous kernels (2.13 to 2.22), against what the name promises.
// Whoever goes on later needs a copy. That is safe where the C++ library is the
// one that TensorFlow's wheels use and the release is one that was looked at;
// elsewhere core's thread has to wait.
inline bool CanKeepDoneCallback() {
#if defined(__GLIBCXX__)
  static const bool can = [] {
    if (tensorflow.TF_Version == nullptr) return false;
    char* rest = nullptr;
    const long major = std::strtol(tensorflow.TF_Version(), &rest, 10);
    if (major != 2 || *rest != '.') return false;
    return std::strtol(rest + 1, nullptr, 10) <= 22;
  }();
  return can;
#else
  return false;
#endif
}

// One asynchronous run. Two sides end it: core's call returns, and the author
// finishes. The last of the two calls core's done callback and deletes this.
class AsyncState {
 public:
  // `done` is null where core waits for the call itself.
  AsyncState(capi::TF_OpKernelContext* context, RunCache& cache,
             capi::TF_AsyncOpKernelDoneCallback* done, OpsFunction ops)
      : context_(std::in_place, context, cache), done_(done), ops_(ops) {
    if (ABSL_PREDICT_FALSE(done == nullptr || !CanKeepDoneCallback())) {
      waiter_.emplace();
    }
  }

  KernelContext& context() { return *context_; }

  // The author's side.
  void Finish(const absl::Status& result) noexcept {
    EndRun(*context_, result, ops_);
    // Core may end the context with the call of done.
    context_.reset();
    Side expected = kInCall;
    if (ABSL_PREDICT_FALSE(waiter_.has_value())) {
      std::lock_guard<std::mutex> lock(waiter_->mutex);
      side_.store(kFinished);
      waiter_->finished.notify_one();
    } else if (!side_.compare_exchange_strong(expected, kFinished)) {
      RunAndDelete(&kept_done_);
    }
  }

  // Core's side: its call is about to return.
  void Return() noexcept {
    if (ABSL_PREDICT_FALSE(waiter_.has_value())) {
      std::unique_lock<std::mutex> lock(waiter_->mutex);
      waiter_->finished.wait(lock,
                             [this] { return side_.load() == kFinished; });
    } else if (side_.load() != kFinished) {
      kept_done_ = *reinterpret_cast<const DoneFunction*>(done_);
      Side expected = kInCall;
      if (side_.compare_exchange_strong(expected, kReturned)) return;
    }
    if (done_ != nullptr) tensorflow.TF_RunAsyncOpKernelDoneCallback(done_);
    delete this;
  }

 private:
  using DoneFunction = std::function<void()>;
  enum Side { kInCall, kReturned, kFinished };
  struct Waiter {
    std::mutex mutex;
    std::condition_variable finished;
  };

  void RunAndDelete(DoneFunction* done) {
    tensorflow.TF_RunAsyncOpKernelDoneCallback(
        reinterpret_cast<capi::TF_AsyncOpKernelDoneCallback*>(done));
    delete this;
  }

  std::optional<KernelContext> context_;
  capi::TF_AsyncOpKernelDoneCallback* const done_;
  const OpsFunction ops_;
  DoneFunction kept_done_;
  std::atomic<Side> side_{kInCall};
  std::optional<Waiter> waiter_;  // Where core's thread has to wait.
};

}  // namespace tfplug::internal

#endif  // TFPLUG_KERNEL_INTERNAL_ASYNC_STATE_H_
