// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_KERNEL_H_
#define TFPLUG_KERNEL_KERNEL_H_

#include "absl/status/status.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/kernel/internal/kernel_table.h"
#include "tfplug/kernel/internal/run_cache.h"
#include "tfplug/kernel/kernel_construction.h"
#include "tfplug/kernel/kernel_context.h"
#include "tfplug/kernel/kernel_def.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The code for one op on one device. One object is constructed for each node of
// a graph and runs each time the node runs. Its constructor may take a
// `KernelConstruction&`.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // create_func: called once after construction, to read attributes. After a
  // failure the kernel is destroyed without a run, and TensorFlow reports the
  // status to the user who built the graph.
  virtual absl::Status Init(KernelConstruction& /*construction*/) {
    return absl::OkStatus();
  }

  // compute_func: validates the inputs, sets every output, enqueues the work on
  // the context's stream and returns. Called on any thread, also on several at
  // once for one kernel object: keep the state of a run in local variables. The
  // message of a failure is prefixed with op and node; returning OK with an
  // output unset is a failure.
  virtual absl::Status Compute(KernelContext& context) = 0;

  template <class KernelT>
  using TableOf = kernel_internal::KernelTable<KernelT, Kernel>;

 private:
  friend struct internal::Access;
  kernel_internal::RunCache run_cache_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_KERNEL_H_
