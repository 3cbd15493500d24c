// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_ALL_MATH_H_
#define TFPLUG_OP_KERNELS_ALL_MATH_H_

#include "tfplug/base/separate.h"
#include "tfplug/op_kernels/registrar.h"
#ifndef TFPLUG_SEPARATE
#include "tfplug/op_kernels/internal/all_math.h"
#endif

#pragma GCC visibility push(hidden)

namespace tfplug {

// Registers the families of arithmetic: element-wise functions, also
// activations, and the ops of clusters and regions; reductions, matrix
// products, Fourier transforms and random numbers.
TFPLUG_SEPARABLE void AllMathOps(const Registrar& registrar);

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_ALL_MATH_H_
