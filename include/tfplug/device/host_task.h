// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_HOST_TASK_H_
#define TFPLUG_DEVICE_HOST_TASK_H_

#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "tfplug/abi/types.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/log.h"
#include "tfplug/base/status.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// A callback of TensorFlow that a stream runs on the host (host_callback). A
// stream that accepts a task must run it exactly once, on any thread, even if
// the work before it failed: until then TensorFlow keeps buffers alive, and
// threads may wait. Move-only.
class HostTask {
 public:
  HostTask(capi::SE_StatusCallbackFn callback_fn, void* callback_arg,
           bool is_short = false)
      : callback_fn_(callback_fn),
        callback_arg_(callback_arg),
        is_short_(is_short) {}
  HostTask(HostTask&& other) noexcept
      : callback_fn_(std::exchange(other.callback_fn_, nullptr)),
        callback_arg_(other.callback_arg_),
        is_short_(other.is_short_) {}
  HostTask& operator=(HostTask&& other) noexcept {
    std::swap(callback_fn_, other.callback_fn_);
    std::swap(callback_arg_, other.callback_arg_);
    std::swap(is_short_, other.is_short_);
    return *this;
  }
  ~HostTask() {
    if (callback_fn_ != nullptr) LogDropped();
  }

  // Returns whether the task takes about a microsecond and waits for nothing, so
  // that a stream that has no other work best runs it in RunOnHost.
  bool is_short() const { return is_short_; }

  // Runs the task and returns its status. Does nothing after the first call.
  // Drivers call it on threads of their own, which an exception would abort.
  absl::Status Run() noexcept {
    auto callback_fn = std::exchange(callback_fn_, nullptr);
    if (callback_fn == nullptr) return absl::OkStatus();
    return internal::Guarded([&]() -> absl::Status {
      const OwnedStatus status;
      callback_fn(callback_arg_, status.get());
      return ABSL_PREDICT_TRUE(status.ok()) ? absl::OkStatus()
                                            : status.ToStatus();
    });
  }
  absl::Status operator()() { return Run(); }

  // Gives up the task and returns its C function and argument, for a driver
  // whose callbacks are C functions. The driver's callback must then run
  // HostTask(callback_fn, callback_arg).Run().
  std::pair<capi::SE_StatusCallbackFn, void*> Release() {
    return {std::exchange(callback_fn_, nullptr), callback_arg_};
  }

 private:
  [[gnu::cold, gnu::noinline]] static void LogDropped() {
    internal::LogError("host_callback",
                       "a HostTask was destroyed before it ran. Unless "
                       "RunOnHost returned an error, TensorFlow waits for the "
                       "task forever: run each task that RunOnHost accepts");
  }

  capi::SE_StatusCallbackFn callback_fn_;
  void* callback_arg_;
  bool is_short_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_HOST_TASK_H_
