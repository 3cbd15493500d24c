// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_ALL_ARRAY_H_
#define TFPLUG_OP_KERNELS_ALL_ARRAY_H_

#include "tfplug/base/separate.h"
#include "tfplug/op_kernels/registrar.h"
#ifndef TFPLUG_SEPARATE
#include "tfplug/op_kernels/internal/all_array.h"
#endif

#pragma GCC visibility push(hidden)

namespace tfplug {

// Registers the families of arrays: shapes, slices, indices, sorting, lists and
// variables; and the op that waits for the device.
TFPLUG_SEPARABLE void AllArrayOps(const Registrar& registrar);

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_ALL_ARRAY_H_
