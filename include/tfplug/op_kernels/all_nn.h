// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_ALL_NN_H_
#define TFPLUG_OP_KERNELS_ALL_NN_H_

#include "tfplug/base/separate.h"
#include "tfplug/op_kernels/registrar.h"
#ifndef TFPLUG_SEPARATE
#include "tfplug/op_kernels/internal/all_nn.h"
#endif

#pragma GCC visibility push(hidden)

namespace tfplug {

// Registers the families of neural networks and images: convolutions, pooling,
// normalization, losses, optimizers, resizing.
TFPLUG_SEPARABLE void AllNnOps(const Registrar& registrar);

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_ALL_NN_H_
