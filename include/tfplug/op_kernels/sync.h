// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SYNC_H_
#define TFPLUG_OP_KERNELS_SYNC_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/async_kernel.h"
#include "tfplug/op_kernels/internal/registered_backend.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace op_kernels_internal {

// SyncDevice: finishes after all that was enqueued before. TensorFlow's own
// kernel does not wait for a plug-in's device, so that
// tf.test.experimental.sync_devices(), with which users take times, would
// return at once.
class SyncDeviceKernel final : public AsyncKernel {
 public:
  absl::Status ComputeAsync(AsyncRun& run) override {
    // A stream that cannot run a task is not asynchronous.
    if (registered_backend.host_access == nullptr) {
      run.Finish(absl::OkStatus());
      return absl::OkStatus();
    }
    TFPLUG_ASSIGN_OR_RETURN(void* const stream,
                            registered_backend.get_stream(run.context()));
    const auto moved = std::make_shared<AsyncRun>(std::move(run));
    const absl::Status status = registered_backend.host_access->run(
        stream, [moved] { moved->Finish(absl::OkStatus()); });
    if (!status.ok()) moved->Finish(status);
    return absl::OkStatus();
  }
};

}  // namespace op_kernels_internal

inline void SyncOps(const Registrar& registrar) {
  registrar.Add<op_kernels_internal::SyncDeviceKernel>(KernelDef("SyncDevice"));
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_SYNC_H_
