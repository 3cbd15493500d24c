// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_LAUNCH_OBSERVER_H_
#define TFPLUG_OP_KERNELS_INTERNAL_LAUNCH_OBSERVER_H_

#include "absl/status/statusor.h"
#include "tfplug/kernel/kernel_context.h"
#include "tfplug/primitives/launcher.h"
#include "tfplug/runtime/run_observer.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// An observer that also learns what kernels launch: all observers of runs of
// this library's kernels are of this class.
class LaunchObserver : public runtime::RunObserver {
 public:
  // Returns the launcher of a kernel's run on the device.
  virtual absl::StatusOr<Launcher> MakeLauncher(KernelContext& context,
                                                Scratch* scratch) = 0;
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_LAUNCH_OBSERVER_H_
