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

namespace tfplug {

// The code for one op on one device. One object per node of a graph, with
// `KernelConstruction&` as the constructor's argument if there is such a
// constructor; it runs each time the node runs.
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
  // the context's stream and returns. Any thread, several at once for one
  // kernel object: the state of a run belongs in local variables. Op and node
  // are put in front of a failure's message; OK with an output unset is a
  // failure.
  virtual absl::Status Compute(KernelContext& context) = 0;

  template <class KernelT>
  using TableOf = internal::KernelTable<KernelT, Kernel>;

 private:
  friend struct internal::Access;
  internal::RunCache run_cache_;
};

}  // namespace tfplug

#endif  // TFPLUG_KERNEL_KERNEL_H_
