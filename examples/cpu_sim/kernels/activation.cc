// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "kernels/elementwise.h"
#include "kernels/number_ops.h"

namespace cpu_sim {
namespace {

// Returns an array like `like` with every element equal to `value`.
template <typename X>
auto Constant(const X& like, float value) {
  return Row<float>::Constant(like.size(), value);
}

// The constants of Selu, which give the result mean 0 and variance 1.
constexpr float kSeluScale = 1.0507009873554804934f;
constexpr float kSeluScaleAlpha = 1.7580993408473768599f;

constexpr auto kElu = [](const auto& x) {
  return (x < 0).select(x.expm1(), x);
};
constexpr auto kSelu = [](const auto& x) {
  return (x < 0).select(x.expm1() * kSeluScaleAlpha, x * kSeluScale);
};
// log(1 + exp(x)). For large x that is x, and for very negative x it is exp(x),
// within float precision.
constexpr auto kSoftplus = [](const auto& x) {
  const float limit = std::log(std::numeric_limits<float>::epsilon()) + 2;
  return (x > -limit).select(x, (x < limit).select(x.exp(), x.exp().log1p()));
};
constexpr auto kSoftsign = [](const auto& x) { return x / (1 + x.abs()); };

// Gradients, with TensorFlow's argument order: the incoming gradient, then the
// function's input or, for Elu and Selu, its output.
constexpr auto kEluGrad = [](const auto& dy, const auto& y) {
  return (y < 0).select(dy * (y + 1), dy);
};
constexpr auto kSeluGrad = [](const auto& dy, const auto& y) {
  return (y < 0).select(dy * (y + kSeluScaleAlpha), dy * kSeluScale);
};
constexpr auto kSoftplusGrad = [](const auto& dy, const auto& x) {
  return dy / ((-x).exp() + 1);
};
constexpr auto kSoftsignGrad = [](const auto& dy, const auto& x) {
  return dy / (1 + x.abs()).square();
};

[[maybe_unused]] const bool kernels =
    RegisterUnary<kElu, float>("Elu") && RegisterUnary<kSelu, float>("Selu") &&
    RegisterUnary<kSoftplus, float>("Softplus") &&
    RegisterUnary<kSoftsign, float>("Softsign") &&
    RegisterFloats<Unary::kTanh>("Tanh") &&
    RegisterFloats<Unary::kSigmoid>("Sigmoid") &&
    RegisterBinary<kEluGrad, float>("EluGrad") &&
    RegisterBinary<kSeluGrad, float>("SeluGrad") &&
    RegisterBinary<kSoftplusGrad, float>("SoftplusGrad") &&
    RegisterBinary<kSoftsignGrad, float>("SoftsignGrad") &&
    RegisterNumbers<Binary::kTanhGrad, float>("TanhGrad") &&
    RegisterNumbers<Binary::kSigmoidGrad, float>("SigmoidGrad") &&
    RegisterNumbers<Binary::kSqrtGrad, float>("SqrtGrad") &&
    RegisterNumbers<Binary::kRsqrtGrad, float>("RsqrtGrad") &&
    RegisterNumbers<Binary::kReciprocalGrad, float>("ReciprocalGrad") &&
    RegisterNumbers<Binary::kReciprocalGrad, float>("InvGrad");

}  // namespace
}  // namespace cpu_sim
