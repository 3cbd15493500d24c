// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>

#include "kernels/elementwise.h"
#include "kernels/narrow.h"

namespace cpu_sim {
namespace {

// ---- Of two tensors --------------------------------------------------------

constexpr auto kAdd = [](const auto& a, const auto& b) { return a + b; };
constexpr auto kSub = [](const auto& a, const auto& b) { return a - b; };
constexpr auto kMul = [](const auto& a, const auto& b) { return a * b; };
constexpr auto kDiv = [](const auto& a, const auto& b) { return a / b; };
// 0 where the divisor is 0.
constexpr auto kDivNoNan = [](const auto& a, const auto& b) {
  return (b == 0).select(b, a / b);
};
constexpr auto kSquaredDifference = [](const auto& a, const auto& b) {
  return (a - b).square();
};
// A NaN on either side is the result.
constexpr auto kMaximum = [](const auto& a, const auto& b) {
  return (a >= b || a != a).select(a, b);
};
constexpr auto kMinimum = [](const auto& a, const auto& b) {
  return (a <= b || a != a).select(a, b);
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

// int32 is left to core, which has it for every device, in host memory.
[[maybe_unused]] const bool binary_kernels =
    RegisterBinary<kAdd, float, int64_t>("Add") &&
    RegisterBinary<kAdd, float, int64_t>("AddV2") &&
    RegisterBinary<kSub, float, int64_t>("Sub") &&
    RegisterBinary<kMul, float, int64_t>("Mul") &&
    RegisterBinary<kDiv, float>("RealDiv") &&
    RegisterBinary<kDiv, float>("Div") &&
    RegisterBinary<kDivNoNan, float>("DivNoNan") &&
    RegisterBinary<kSquaredDifference, float>("SquaredDifference") &&
    RegisterBinary<kMaximum, float, int64_t>("Maximum") &&
    RegisterBinary<kMinimum, float, int64_t>("Minimum") &&
    RegisterBinary<kPow, float>("Pow") &&
    RegisterBinary<kFloorMod, int64_t>("FloorMod") &&
    RegisterNarrow<kAdd, 2>("AddV2") && RegisterNarrow<kSub, 2>("Sub") &&
    RegisterNarrow<kMul, 2>("Mul") && RegisterNarrow<kDiv, 2>("RealDiv") &&
    RegisterNarrow<kMaximum, 2>("Maximum") &&
    RegisterNarrow<kMinimum, 2>("Minimum");

// ---- Of one tensor ---------------------------------------------------------

constexpr auto kNeg = [](const auto& x) { return -x; };
constexpr auto kAbs = [](const auto& x) { return x.abs(); };
constexpr auto kSign = [](const auto& x) { return x.sign(); };
constexpr auto kReciprocal = [](const auto& x) { return x.inverse(); };
constexpr auto kSquare = [](const auto& x) { return x.square(); };
// Not Eigen's, by which the root of infinity is no number.
constexpr auto kSqrt = [](const auto& x) {
  return x.unaryExpr([](auto value) { return std::sqrt(value); });
};
constexpr auto kRsqrt = [](const auto& x) { return x.rsqrt(); };
constexpr auto kExp = [](const auto& x) { return x.exp(); };
constexpr auto kLog = [](const auto& x) { return x.log(); };
constexpr auto kLog1p = [](const auto& x) { return x.log1p(); };
constexpr auto kFloor = [](const auto& x) { return x.floor(); };

[[maybe_unused]] const bool unary_kernels =
    RegisterUnary<kNeg, float, int64_t>("Neg") &&
    RegisterUnary<kAbs, float, int64_t>("Abs") &&
    RegisterUnary<kSign, float>("Sign") &&
    RegisterUnary<kReciprocal, float>("Reciprocal") &&
    RegisterUnary<kReciprocal, float>("Inv") &&
    RegisterUnary<kSquare, float, int64_t>("Square") &&
    RegisterUnary<kSqrt, float>("Sqrt") &&
    RegisterUnary<kRsqrt, float>("Rsqrt") &&
    RegisterUnary<kExp, float>("Exp") && RegisterUnary<kLog, float>("Log") &&
    RegisterUnary<kLog1p, float>("Log1p") &&
    RegisterUnary<kFloor, float>("Floor") && RegisterNarrow<kNeg, 1>("Neg") &&
    RegisterNarrow<kSquare, 1>("Square") && RegisterNarrow<kSqrt, 1>("Sqrt") &&
    RegisterNarrow<kRsqrt, 1>("Rsqrt") && RegisterNarrow<kExp, 1>("Exp");

// ---- Of any number of tensors ----------------------------------------------

class AddN final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor first, context.input(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor sum,
                            context.allocate_output(0, first.shape()));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.stream<Stream>());
    TFPLUG_RETURN_IF_ERROR(stream->CopyDeviceToDevice(
        sum.memory(), first.memory(), first.byte_size()));
    for (int i = 1; i < context.num_inputs(); ++i) {
      TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.input(i));
      if (x.shape() != first.shape()) {
        return absl::InvalidArgumentError(
            "Inputs to operation AddN must have the same size and shape. "
            "Input 0: " +
            first.shape().ToString() + " != input " + std::to_string(i) + ": " +
            x.shape().ToString());
      }
      TFPLUG_RETURN_IF_ERROR(stream->Launch(
          [](float* sum, const float* x, int64_t size) {
            RowMap<float>(sum, size) += ConstRowMap<float>(x, size);
          },
          sum.flat<float>(), x.flat<float>(), x.num_elements()));
    }
    return absl::OkStatus();
  }
};
TFPLUG_REGISTER_KERNEL(AddN,
                       tfplug::KernelDef("AddN").TypeConstraint<float>("T"));

}  // namespace
}  // namespace cpu_sim
