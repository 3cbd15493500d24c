// SPDX-License-Identifier: Apache-2.0
#include <tfplug/status_macros.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

#include "kernels/elementwise.h"
#include "kernels/float_ops.h"

// int32 is left to core, which has it for every device, in host memory.
namespace cpu_sim {
namespace {

using tfplug::BFloat16, tfplug::Half;

// ---- Of two tensors --------------------------------------------------------

[[maybe_unused]] const bool binary_floats =
    RegisterFloatOp<Binary::kAdd, float>("Add") &&
    RegisterFloatOps<Binary::kAdd>("AddV2") &&
    RegisterFloatOps<Binary::kSub>("Sub") &&
    RegisterFloatOps<Binary::kMul>("Mul") &&
    RegisterFloatOps<Binary::kDiv>("RealDiv") &&
    RegisterFloatOp<Binary::kDiv, float>("Div") &&
    RegisterFloatOp<Binary::kDivNoNan, float>("DivNoNan") &&
    RegisterFloatOps<Binary::kMulNoNan>("MulNoNan") &&
    RegisterFloatOps<Binary::kSquaredDifference>("SquaredDifference") &&
    RegisterFloatOps<Binary::kMaximum>("Maximum") &&
    RegisterFloatOps<Binary::kMinimum>("Minimum");

// Of integers, and what is not worth vectors.
constexpr auto kAdd = [](const auto& a, const auto& b) { return a + b; };
constexpr auto kSub = [](const auto& a, const auto& b) { return a - b; };
constexpr auto kMul = [](const auto& a, const auto& b) { return a * b; };
constexpr auto kSquaredDifference = [](const auto& a, const auto& b) {
  return (a - b).square();
};
constexpr auto kMaximum = [](const auto& a, const auto& b) {
  return (a >= b).select(a, b);
};
constexpr auto kMinimum = [](const auto& a, const auto& b) {
  return (a <= b).select(a, b);
};
constexpr auto kPow = [](const auto& a, const auto& b) { return a.pow(b); };
// With the sign of the divisor; by 0 it is 0, since a device cannot stop the
// host to tell.
constexpr auto kFloorMod = [](const auto& a, const auto& b) {
  return a.binaryExpr(b, [](auto x, auto y) {
    if (y == 0) return y;
    const auto rest = x % y;
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  });
};

[[maybe_unused]] const bool binary_kernels =
    RegisterBinary<kAdd, int64_t>("Add") &&
    RegisterBinary<kAdd, int64_t>("AddV2") &&
    RegisterBinary<kSub, int64_t>("Sub") &&
    RegisterBinary<kMul, int64_t>("Mul") &&
    RegisterBinary<kSquaredDifference, int64_t>("SquaredDifference") &&
    RegisterBinary<kMaximum, int64_t>("Maximum") &&
    RegisterBinary<kMinimum, int64_t>("Minimum") &&
    RegisterBinary<kPow, float>("Pow") &&
    RegisterBinary<kFloorMod, int64_t>("FloorMod");

// ---- Of one tensor ---------------------------------------------------------

[[maybe_unused]] const bool unary_floats =
    RegisterFloatOps<Unary::kNeg>("Neg") &&
    RegisterFloatOp<Unary::kAbs, float>("Abs") &&
    RegisterFloatOp<Unary::kSign, float>("Sign") &&
    RegisterFloatOps<Unary::kReciprocal>("Reciprocal") &&
    RegisterFloatOp<Unary::kReciprocal, float>("Inv") &&
    RegisterFloatOps<Unary::kSquare>("Square") &&
    RegisterFloatOps<Unary::kSqrt>("Sqrt") &&
    RegisterFloatOps<Unary::kRsqrt>("Rsqrt") &&
    RegisterFloatOps<Unary::kExp>("Exp") &&
    RegisterFloatOps<Unary::kExpm1>("Expm1") &&
    RegisterFloatOps<Unary::kLog>("Log") &&
    RegisterFloatOps<Unary::kLog1p>("Log1p") &&
    RegisterFloatOp<Unary::kFloor, float>("Floor");

constexpr auto kNeg = [](const auto& x) { return -x; };
constexpr auto kAbs = [](const auto& x) { return x.abs(); };
constexpr auto kSquare = [](const auto& x) { return x.square(); };

[[maybe_unused]] const bool unary_kernels =
    RegisterUnary<kNeg, int64_t>("Neg") &&
    RegisterUnary<kAbs, int64_t>("Abs") &&
    RegisterUnary<kSquare, int64_t>("Square");

// ---- Of any number of tensors ----------------------------------------------

// y = a + b, on the device; y may be a.
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
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor first, context.input(0));
    if (context.num_inputs() == 1) return context.set_output(0, first);
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor sum,
                            context.allocate_output(0, first.shape()));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.stream<Stream>());
    absl::Span<T> so_far = first.flat<T>();
    for (int i = 1; i < context.num_inputs(); ++i) {
      TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.input(i));
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
