// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_KERNEL_H_
#define TFPLUG_KERNEL_KERNEL_H_

#include "absl/status/status.h"
#include "tfplug/kernel/internal/run_cache.h"
#include "tfplug/kernel/kernel_construction.h"
#include "tfplug/kernel/kernel_context.h"
#include "tfplug/kernel/kernel_def.h"

namespace tfplug {
namespace internal {
template <class KernelT>
struct SyncKernelTable;
}  // namespace internal

// The code for one op on one device. Made once for each node, with
// `KernelConstruction&` if there is such a constructor, else with nothing; runs
// each time the node does.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // create_func: called once after construction; read attributes here. After a
  // failure the kernel is destroyed without having run, and core reports the
  // status to whoever built the graph.
  virtual absl::Status Init(KernelConstruction& /*construction*/) {
    return absl::OkStatus();
  }

  // compute_func: check the inputs, set every output, put the work on the
  // context's stream and return. Any thread, several at once for one kernel
  // object: keep what a run needs in locals. A failure reaches the user with op
  // and node before the author's words; OK with an output unset is a failure.
  virtual absl::Status Compute(KernelContext& context) = 0;

  template <class KernelT>
  using TableOf = internal::SyncKernelTable<KernelT>;

 private:
  template <class KernelT>
  friend struct internal::SyncKernelTable;
  internal::RunCache run_cache_;
};

}  // namespace tfplug

#endif  // TFPLUG_KERNEL_KERNEL_H_
