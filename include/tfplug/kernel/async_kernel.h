// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_ASYNC_KERNEL_H_
#define TFPLUG_KERNEL_ASYNC_KERNEL_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "tfplug/kernel/internal/async_state.h"
#include "tfplug/kernel/internal/run_cache.h"
#include "tfplug/kernel/kernel_construction.h"
#include "tfplug/kernel/kernel_context.h"
#include "tfplug/kernel/kernel_def.h"

namespace tfplug {
namespace internal {
template <class KernelT>
struct AsyncKernelTable;
}  // namespace internal

// One run of an AsyncKernel, which goes on until it is finished, on any thread.
// Core hears of the end exactly once: by Finish, or when an unfinished run is
// dropped, which fails it.
class AsyncRun {
 public:
  explicit AsyncRun(internal::AsyncState* state) : state_(state) {}
  AsyncRun(AsyncRun&&) = default;
  AsyncRun& operator=(AsyncRun&&) = default;

  // Until Finish; one thread at a time.
  KernelContext& context() { return state_->context(); }

  // The run is over, with this result. Nothing of the context may be touched
  // any more. A second Finish does nothing.
  void Finish(const absl::Status& result) {
    if (state_ != nullptr) state_.release()->Finish(result);
  }

  // For a callback that takes a pointer: gives this run away as one, which has
  // to come back as an AsyncRun, by Take, exactly once.
  void* Release() { return state_.release(); }
  static AsyncRun Take(void* released) {
    return AsyncRun(static_cast<internal::AsyncState*>(released));
  }

  // False after Finish, or when the run was moved elsewhere.
  explicit operator bool() const { return state_ != nullptr; }

 private:
  struct Drop {
    void operator()(internal::AsyncState* state) const {
      state->Finish(absl::InternalError(
          "the kernel dropped its AsyncRun without a call of Finish"));
    }
  };
  std::unique_ptr<internal::AsyncState, Drop> state_;
};

// A kernel whose run may go on after the hook has returned, without a thread of
// core's waiting for it: one that waits for a peer, a queue or a disk. Work on
// the stream needs no AsyncKernel.
class AsyncKernel {
 public:
  virtual ~AsyncKernel() = default;

  // create_func, as in Kernel.
  virtual absl::Status Init(KernelConstruction& /*construction*/) {
    return absl::OkStatus();
  }

  // compute_async_func: either moves `run` to where the work will be finished,
  // and returns OK; or does all of it, and returns the result. An error after
  // `run` was moved away only goes to the log: whoever has the run ends it.
  //
  // Any thread, several at once for one kernel object. Up to 2.12 core has no
  // asynchronous kernels for plug-ins: there, and in a TensorFlow newer than
  // these headers, core's thread waits until the run is finished.
  virtual absl::Status ComputeAsync(AsyncRun& run) = 0;

  template <class KernelT>
  using TableOf = internal::AsyncKernelTable<KernelT>;

 private:
  template <class KernelT>
  friend struct internal::AsyncKernelTable;
  internal::RunCache run_cache_;
};

}  // namespace tfplug

#include "tfplug/kernel/internal/async_kernel_table.h"

#endif  // TFPLUG_KERNEL_ASYNC_KERNEL_H_
