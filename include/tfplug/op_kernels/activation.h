// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_ACTIVATION_H_
#define TFPLUG_OP_KERNELS_ACTIVATION_H_

#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/ops/nn.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace op_kernels_internal {

// The exponential never overflows, and the logarithm keeps its digits.
inline Value Softplus(Value x) { return Max(x, 0) + Log1p(Exp(-Abs(x))); }

// The constants of selu, from Klambauer et al., "Self-normalizing neural
// networks", 2017.
inline constexpr double kSeluScale = 1.0507009873554804934193349852946;
inline constexpr double kSeluScaledAlpha = 1.7580993408473768599402175208123;

}  // namespace op_kernels_internal

// Activations and their gradients: ActivationOps registers them.
inline std::vector<ElementwiseOp> ActivationTable() {
  using V = Value;
  return {
      Elementwise<ops::Relu>([](V x) { return Max(x, 0); }),
      Elementwise<ops::ReluGrad>(
          [](V dy, V x) { return dy * Cast(x > 0, dy.type()); },
          Shapes::kEqual),
      Elementwise<ops::Relu6>([](V x) { return Min(Max(x, 0), 6); }),
      Elementwise<ops::Relu6Grad>(
          [](V dy, V x) {
            return dy * Cast(x > 0, dy.type()) * Cast(x < 6, dy.type());
          },
          Shapes::kEqual),
      Elementwise<ops::LeakyRelu>(
          [](V x, double alpha) { return Select(x > 0, x, x * alpha); },
          "alpha"),
      Elementwise<ops::LeakyReluGrad>(
          [](V dy, V x, double alpha) { return Select(x > 0, dy, dy * alpha); },
          "alpha", Shapes::kEqual),
      Elementwise<ops::Elu>([](V x) { return Select(x < 0, Expm1(x), x); }),
      Elementwise<ops::EluGrad>(
          [](V dy, V y) { return Select(y < 0, dy * (y + 1), dy); },
          Shapes::kEqual),
      Elementwise<ops::Selu>([](V x) {
        return Select(x < 0, op_kernels_internal::kSeluScaledAlpha * Expm1(x),
                      op_kernels_internal::kSeluScale * x);
      }),
      Elementwise<ops::SeluGrad>(
          [](V dy, V y) {
            return Select(y < 0,
                          dy * (y + op_kernels_internal::kSeluScaledAlpha),
                          dy * op_kernels_internal::kSeluScale);
          },
          Shapes::kEqual),
      Elementwise<ops::Softplus>(op_kernels_internal::Softplus),
      Elementwise<ops::SoftplusGrad>(
          [](V dy, V x) { return dy / (1 + Exp(-x)); }, Shapes::kEqual),
      Elementwise<ops::Softsign>([](V x) { return x / (1 + Abs(x)); }),
      Elementwise<ops::SoftsignGrad>(
          [](V dy, V x) { return dy / Square(1 + Abs(x)); }, Shapes::kEqual),
  };
}

inline void ActivationOps(const Registrar& registrar) {
  AddElementwiseOps(registrar, ActivationTable());
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_ACTIVATION_H_
