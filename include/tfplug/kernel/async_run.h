// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_ASYNC_RUN_H_
#define TFPLUG_KERNEL_ASYNC_RUN_H_

#include <memory>

#include "absl/status/status.h"
#include "tfplug/kernel/internal/async_state.h"
#include "tfplug/kernel/kernel_context.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// One run of an AsyncKernel. It continues until any thread finishes it.
// TensorFlow is notified exactly once: by Finish, or when an unfinished run is
// destroyed, which fails it.
class AsyncRun {
 public:
  explicit AsyncRun(kernel_internal::AsyncState* state) : state_(state) {}
  AsyncRun(AsyncRun&&) = default;
  AsyncRun& operator=(AsyncRun&&) = default;

  // Returns the run's context. It is valid until Finish, and only one thread
  // may use it at a time.
  KernelContext& context() { return state_->context(); }

  // Ends the run with `result`. The context must not be used afterwards. A
  // second call has no effect.
  void Finish(const absl::Status& result) {
    if (state_ != nullptr) state_.release()->Finish(result);
  }

  // Converts this run to a pointer, for a callback that takes a void*. The
  // callback must convert it back with Adopt, exactly once.
  void* Release() { return state_.release(); }
  static AsyncRun Adopt(void* released) {
    return AsyncRun(static_cast<kernel_internal::AsyncState*>(released));
  }

  // Returns false after Finish or Release, or when the run was moved elsewhere.
  explicit operator bool() const { return state_ != nullptr; }

 private:
  struct FailUnfinished {
    void operator()(kernel_internal::AsyncState* state) const {
      state->Finish(absl::InternalError(
          "the kernel destroyed its AsyncRun without calling Finish"));
    }
  };
  std::unique_ptr<kernel_internal::AsyncState, FailUnfinished> state_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_ASYNC_RUN_H_
