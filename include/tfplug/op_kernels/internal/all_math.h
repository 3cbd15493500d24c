// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_ALL_MATH_H_
#define TFPLUG_OP_KERNELS_INTERNAL_ALL_MATH_H_

#include "tfplug/base/separate.h"
#include "tfplug/op_kernels/activation.h"
#include "tfplug/op_kernels/binomial.h"
#include "tfplug/op_kernels/bits.h"
#include "tfplug/op_kernels/check_numerics.h"
#include "tfplug/op_kernels/complex.h"
#include "tfplug/op_kernels/convert.h"
#include "tfplug/op_kernels/counting.h"
#include "tfplug/op_kernels/cross.h"
#include "tfplug/op_kernels/einsum.h"
#include "tfplug/op_kernels/fft.h"
#include "tfplug/op_kernels/float8.h"
#include "tfplug/op_kernels/fused_map.h"
#include "tfplug/op_kernels/generator.h"
#include "tfplug/op_kernels/math.h"
#include "tfplug/op_kernels/matmul.h"
#include "tfplug/op_kernels/multinomial.h"
#include "tfplug/op_kernels/random.h"
#include "tfplug/op_kernels/random_gamma.h"
#include "tfplug/op_kernels/reduction.h"
#include "tfplug/op_kernels/region.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/stream_copy.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

TFPLUG_SEPARABLE void AllMathOps(const Registrar& registrar) {
  ActivationOps(registrar);
  BinomialOps(registrar);
  BitsOps(registrar);
  CheckNumericsOps(registrar);
  ComplexOps(registrar);
  ConvertOps(registrar);
  CountingOps(registrar);
  CrossOps(registrar);
  EinsumOps(registrar);
  Float8Ops(registrar);
  FourierOps(registrar);
  FusedMapOps(registrar);
  GeneratorOps(registrar);
  MathOps(registrar);
  MatMulOps(registrar);
  MultinomialOps(registrar);
  RandomGammaOps(registrar);
  RandomOps(registrar);
  ReductionOps(registrar);
  RegionOps(registrar);
  StreamCopyOps(registrar);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_ALL_MATH_H_
