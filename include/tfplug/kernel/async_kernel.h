// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_ASYNC_KERNEL_H_
#define TFPLUG_KERNEL_ASYNC_KERNEL_H_

#include "absl/status/status.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/base/internal/release.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/kernel/async_run.h"
#include "tfplug/kernel/internal/async_kernel_table.h"
#include "tfplug/kernel/internal/async_state.h"
#include "tfplug/kernel/internal/run_cache.h"
#include "tfplug/kernel/kernel_construction.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// A kernel whose run may continue after ComputeAsync has returned, so that a
// run which waits for a peer, a queue or a disk blocks none of TensorFlow's
// threads. A kernel that only enqueues work on the stream is a Kernel.
class AsyncKernel {
 public:
  virtual ~AsyncKernel() = default;

  // create_func, as in Kernel.
  virtual absl::Status Init(KernelConstruction& /*construction*/) {
    return absl::OkStatus();
  }

  // compute_async_func: either moves `run` to the code that will finish it and
  // returns OK, or does all the work and returns the result. An error returned
  // after `run` was moved is only logged; the new owner must finish the run.
  //
  // Called on any thread, also on several at once for one kernel object. Up to
  // 2.12 the C API has no asynchronous kernels: in those releases, and in a
  // TensorFlow newer than these headers, the calling thread waits until the run
  // is finished.
  virtual absl::Status ComputeAsync(AsyncRun& run) = 0;

  // Returns whether no thread waits for a run in the TensorFlow that is running.
  static bool IsAsynchronous() {
    return internal::tensorflow.TF_NewAsyncKernelBuilder != nullptr &&
           kernel_internal::DoneCallbackOf(internal::CurrentRelease()) !=
               kernel_internal::DoneCallback::kWait;
  }

  template <class KernelT>
  using TableOf = kernel_internal::AsyncKernelTable<KernelT, AsyncKernel>;

 private:
  friend struct internal::Access;
  kernel_internal::RunCache run_cache_;
  [[maybe_unused]] const kernel_internal::DoneCallback done_callback_ =
      kernel_internal::DoneCallbackOf(internal::CurrentRelease());
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_ASYNC_KERNEL_H_
