// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_HOST_BACKEND_H_
#define TFPLUG_OP_KERNELS_INTERNAL_HOST_BACKEND_H_

#include "tfplug/base/separate.h"
#ifndef TFPLUG_SEPARATE
#include "tfplug/op_kernels/internal/use_host_backend.h"
#endif

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// Makes kernels run on the host that are registered as OnHost<...> or with
// Registrar::OnHost().
TFPLUG_SEPARABLE void UseHostBackend();

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_HOST_BACKEND_H_
