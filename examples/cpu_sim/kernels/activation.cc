// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "kernels/elementwise.h"

namespace cpu_sim {
namespace {

// The same number everywhere.
template <typename X>
auto Constant(const X& like, float value) {
  return Row<float>::Constant(like.size(), value);
}

// Selu: what makes the mean 0 and the variance 1.
constexpr float kSeluScale = 1.0507009873554804934f;
constexpr float kSeluScaleAlpha = 1.7580993408473768599f;

constexpr auto kElu = [](const auto& x) {
  return (x < 0).select(x.expm1(), x);
};
constexpr auto kSelu = [](const auto& x) {
  return (x < 0).select(x.expm1() * kSeluScaleAlpha, x * kSeluScale);
};
// log(1 + exp(x)), which is x or exp(x) where the other part has no digits
// left.
constexpr auto kSoftplus = [](const auto& x) {
  const float limit = std::log(std::numeric_limits<float>::epsilon()) + 2;
  return (x > -limit).select(x, (x < limit).select(x.exp(), x.exp().log1p()));
};
constexpr auto kSoftsign = [](const auto& x) { return x / (1 + x.abs()); };
constexpr auto kTanh = [](const auto& x) { return x.tanh(); };
constexpr auto kSigmoid = [](const auto& x) { return x.logistic(); };

// Gradients, as TensorFlow orders their arguments. By the gradient and what
// went in; for Elu and Selu, what came out.
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
// By what came out and the gradient.
constexpr auto kTanhGrad = [](const auto& y, const auto& dy) {
  return dy * (1 - y.square());
};
constexpr auto kSigmoidGrad = [](const auto& y, const auto& dy) {
  return dy * y * (1 - y);
};
constexpr auto kSqrtGrad = [](const auto& y, const auto& dy) {
  return dy / (2 * y);
};
constexpr auto kRsqrtGrad = [](const auto& y, const auto& dy) {
  return dy * y.cube() / -2;
};
constexpr auto kReciprocalGrad = [](const auto& y, const auto& dy) {
  return -dy * y.square();
};

[[maybe_unused]] const bool kernels =
    RegisterUnary<kElu, float>("Elu") && RegisterUnary<kSelu, float>("Selu") &&
    RegisterUnary<kSoftplus, float>("Softplus") &&
    RegisterUnary<kSoftsign, float>("Softsign") &&
    RegisterUnary<kTanh, float>("Tanh") &&
    RegisterUnary<kSigmoid, float>("Sigmoid") &&
    RegisterBinary<kEluGrad, float>("EluGrad") &&
    RegisterBinary<kSeluGrad, float>("SeluGrad") &&
    RegisterBinary<kSoftplusGrad, float>("SoftplusGrad") &&
    RegisterBinary<kSoftsignGrad, float>("SoftsignGrad") &&
    RegisterBinary<kTanhGrad, float>("TanhGrad") &&
    RegisterBinary<kSigmoidGrad, float>("SigmoidGrad") &&
    RegisterBinary<kSqrtGrad, float>("SqrtGrad") &&
    RegisterBinary<kRsqrtGrad, float>("RsqrtGrad") &&
    RegisterBinary<kReciprocalGrad, float>("ReciprocalGrad") &&
    RegisterBinary<kReciprocalGrad, float>("InvGrad");

}  // namespace
}  // namespace cpu_sim
