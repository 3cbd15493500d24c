// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>

#include <cstdint>
#include <string>
#include <type_traits>

#include "kernels/elementwise.h"
#include "kernels/number_ops.h"

// TensorFlow has kernels for int32, in host memory, on every device.
namespace cpu_sim {
namespace {

using tfplug::BFloat16, tfplug::Half;

// ---- Binary ops -----------------------------------------------------------

[[maybe_unused]] const bool binary_ops =
    RegisterNumbers<Binary::kAdd, float, int64_t>("Add") &&
    RegisterFloatsAndIntegers<Binary::kAdd>("AddV2") &&
    RegisterFloatsAndIntegers<Binary::kSub>("Sub") &&
    RegisterFloatsAndIntegers<Binary::kMul>("Mul") &&
    RegisterFloatsAndIntegers<Binary::kSquaredDifference>(
        "SquaredDifference") &&
    RegisterFloatsAndIntegers<Binary::kMaximum>("Maximum") &&
    RegisterFloatsAndIntegers<Binary::kMinimum>("Minimum") &&
    RegisterFloats<Binary::kDiv>("RealDiv") &&
    RegisterNumbers<Binary::kDiv, float>("Div") &&
    RegisterNumbers<Binary::kDivNoNan, float>("DivNoNan") &&
    RegisterFloats<Binary::kMulNoNan>("MulNoNan");

constexpr auto kPow = [](const auto& a, const auto& b) { return a.pow(b); };
// The remainder has the divisor's sign. Division by 0 gives 0, because a device
// cannot raise an error on the host.
constexpr auto kFloorMod = [](const auto& a, const auto& b) {
  return a.binaryExpr(b, [](auto x, auto y) {
    if (y == 0) return y;
    if (y == -1) return y - y;  // INT64_MIN % -1 traps on x86
    const auto rest = x % y;
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  });
};
[[maybe_unused]] const bool scalar_loops =
    RegisterBinary<kPow, float>("Pow") &&
    RegisterBinary<kFloorMod, int64_t>("FloorMod");

// ---- Unary ops ------------------------------------------------------------

[[maybe_unused]] const bool unary_ops =
    RegisterFloatsAndIntegers<Unary::kNeg>("Neg") &&
    RegisterNumbers<Unary::kAbs, float, int64_t>("Abs") &&
    RegisterNumbers<Unary::kSign, float>("Sign") &&
    RegisterFloats<Unary::kReciprocal>("Reciprocal") &&
    RegisterNumbers<Unary::kReciprocal, float>("Inv") &&
    RegisterFloatsAndIntegers<Unary::kSquare>("Square") &&
    RegisterFloats<Unary::kSqrt>("Sqrt") &&
    RegisterFloats<Unary::kRsqrt>("Rsqrt") &&
    RegisterFloats<Unary::kExp>("Exp") &&
    RegisterFloats<Unary::kExpm1>("Expm1") &&
    RegisterFloats<Unary::kLog>("Log") &&
    RegisterFloats<Unary::kLog1p>("Log1p") &&
    RegisterNumbers<Unary::kFloor, float>("Floor");

// ---- AddN ------------------------------------------------------------------

// y = a + b, on the device; y may alias a.
template <typename T>
void AddTwo(T* y, const T* a, const T* b, int64_t size) {
  if constexpr (std::is_same_v<T, float>) {
    Simd().elementwise.binary(Binary::kAdd, size, a, 1, b, 1, y);
  } else if constexpr (std::is_integral_v<T>) {
    for (int64_t i = 0; i < size; ++i) y[i] = a[i] + b[i];
  } else {
    for (int64_t i = 0; i < size; ++i) {
      y[i] = T(static_cast<float>(a[i]) + static_cast<float>(b[i]));
    }
  }
}

template <typename T>
class AddN final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor first, context.GetInput(0));
    if (context.num_inputs() == 1) return context.SetOutput(0, first);
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor sum,
                            context.AllocateOutput(0, first.shape()));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    absl::Span<T> so_far = first.flat<T>();
    for (int i = 1; i < context.num_inputs(); ++i) {
      TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(i));
      if (x.shape() != first.shape()) {
        return absl::InvalidArgumentError(
            "Inputs to operation AddN must have the same size and shape. "
            "Input 0: " +
            first.shape().ToString() + " != input " + std::to_string(i) + ": " +
            x.shape().ToString());
      }
      TFPLUG_RETURN_IF_ERROR(stream->Launch(&AddTwo<T>, sum.flat<T>(), so_far,
                                            x.flat<T>(), x.num_elements()));
      so_far = sum.flat<T>();
    }
    return absl::OkStatus();
  }
};

template <typename... Types>
bool RegisterAddN() {
  return (tfplug::RegisterKernel<AddN<Types>>(
              tfplug::KernelDef("AddN").TypeConstraint<Types>("T")) &&
          ...);
}
[[maybe_unused]] const bool sums =
    RegisterAddN<float, int64_t, Half, BFloat16>();

}  // namespace
}  // namespace cpu_sim
