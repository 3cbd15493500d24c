// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_USE_HOST_BACKEND_H_
#define TFPLUG_OP_KERNELS_INTERNAL_USE_HOST_BACKEND_H_

#include "absl/status/statusor.h"
#include "tfplug/base/separate.h"
#include "tfplug/host/host_backend.h"
#include "tfplug/kernel/kernel_context.h"
#include "tfplug/op_kernels/internal/registered_backend.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

struct HostStream {};

TFPLUG_SEPARABLE void UseHostBackend() {
  using Host = HostBackend<HostStream>;
  host_backend = MakeRegisteredBackend<Host>();
  host_backend.get_stream = [](KernelContext&) -> absl::StatusOr<void*> {
    static HostStream stream;
    return static_cast<void*>(&stream);
  };
}

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_USE_HOST_BACKEND_H_
