// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_ALL_MATH_H_
#define TFPLUG_BACKEND_OPS_ALL_MATH_H_

#include "tfplug/backend/ops/activation.h"
#include "tfplug/backend/ops/bits.h"
#include "tfplug/backend/ops/check_numerics.h"
#include "tfplug/backend/ops/complex.h"
#include "tfplug/backend/ops/convert.h"
#include "tfplug/backend/ops/counting.h"
#include "tfplug/backend/ops/cross.h"
#include "tfplug/backend/ops/einsum.h"
#include "tfplug/backend/ops/fft.h"
#include "tfplug/backend/ops/fused_map.h"
#include "tfplug/backend/ops/generator.h"
#include "tfplug/backend/ops/math.h"
#include "tfplug/backend/ops/matmul.h"
#include "tfplug/backend/ops/multinomial.h"
#include "tfplug/backend/ops/random.h"
#include "tfplug/backend/ops/random_gamma.h"
#include "tfplug/backend/ops/reduction.h"
#include "tfplug/backend/registrar.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Registers the families of arithmetic: element-wise functions, reductions,
// matrix products, Fourier transforms and random numbers.
inline void AllMathOps(const Registrar& registrar) {
  ActivationOps(registrar);
  BitsOps(registrar);
  CheckNumericsOps(registrar);
  ComplexOps(registrar);
  ConvertOps(registrar);
  CountingOps(registrar);
  CrossOps(registrar);
  EinsumOps(registrar);
  FourierOps(registrar);
  FusedMapOps(registrar);
  GeneratorOps(registrar);
  MatMulOps(registrar);
  MathOps(registrar);
  MultinomialOps(registrar);
  RandomOps(registrar);
  RandomGammaOps(registrar);
  ReductionOps(registrar);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_OPS_ALL_MATH_H_
