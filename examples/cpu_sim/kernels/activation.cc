// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "kernels/elementwise.h"

namespace cpu_sim {
namespace {

// 0 itself, not 0 * x, which is no number where x is infinite.
template <typename X>
using ScalarOf = typename std::decay_t<X>::Scalar;

// 0 has to be 0, whatever x is: 0 * x would be NaN for an infinity.
constexpr auto kRelu = [](const auto& x) {
  return (x < 0).select(Row<float>::Zero(x.size()), x);
};
constexpr auto kTanh = [](const auto& x) { return x.tanh(); };
constexpr auto kSigmoid = [](const auto& x) { return x.logistic(); };

// Gradients, as TensorFlow orders their arguments: those of Relu by its
// gradient and what went in or came out; the others by what came out and the
// gradient.
constexpr auto kReluGrad = [](const auto& dy, const auto& x) {
  return (x > 0).select(dy, Row<float>::Zero(x.size()));
};
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
    RegisterUnary<kRelu, float>("Relu") &&
    RegisterUnary<kTanh, float>("Tanh") &&
    RegisterUnary<kSigmoid, float>("Sigmoid") &&
    RegisterBinary<kReluGrad, float>("ReluGrad") &&
    RegisterBinary<kTanhGrad, float>("TanhGrad") &&
    RegisterBinary<kSigmoidGrad, float>("SigmoidGrad") &&
    RegisterBinary<kSqrtGrad, float>("SqrtGrad") &&
    RegisterBinary<kRsqrtGrad, float>("RsqrtGrad") &&
    RegisterBinary<kReciprocalGrad, float>("ReciprocalGrad") &&
    RegisterBinary<kReciprocalGrad, float>("InvGrad");

}  // namespace
}  // namespace cpu_sim
