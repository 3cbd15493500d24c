// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "kernels/elementwise.h"
#include "kernels/narrow.h"

namespace cpu_sim {
namespace {

// ---- Comparisons -----------------------------------------------------------

constexpr auto kEqual = [](const auto& a, const auto& b) { return a == b; };
constexpr auto kNotEqual = [](const auto& a, const auto& b) { return a != b; };
constexpr auto kLess = [](const auto& a, const auto& b) { return a < b; };
constexpr auto kLessEqual = [](const auto& a, const auto& b) { return a <= b; };
constexpr auto kGreater = [](const auto& a, const auto& b) { return a > b; };
constexpr auto kGreaterEqual = [](const auto& a, const auto& b) {
  return a >= b;
};

template <const auto& op, typename... Types>
bool RegisterComparison(const char* name) {
  return (tfplug::RegisterKernel<Elementwise<op, bool, Types, Types>>(
              tfplug::KernelDef(name).TypeConstraint<Types>("T")) &&
          ...);
}

// Compares half or bfloat16 elements as floats.
template <const auto& op, typename T>
class CompareNarrow final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor a,
                            FloatInput<T>(context, 0, *stream));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor b,
                            FloatInput<T>(context, 1, *stream));
    const tfplug::Shape a_shape = a.shape(), b_shape = b.shape();
    TFPLUG_ASSIGN_OR_RETURN(const Broadcast<2> all,
                            BroadcastAll<2>({a_shape.dims(), b_shape.dims()}));
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor y, context.AllocateOutput(0, tfplug::Shape(all.shape)));
    return stream->Launch(&DoElementwise<op, bool, float, float>, all.loop,
                          y.flat<bool>(), a.flat<float>(), b.flat<float>());
  }
};

template <const auto& op, typename T>
bool RegisterNarrow(const char* name) {
  return tfplug::RegisterKernel<CompareNarrow<op, T>>(
      tfplug::KernelDef(name).TypeConstraint<T>("T"));
}

// Registers kernels for all floating-point types and for Types. TensorFlow has
// kernels for int32, in host memory, on every device.
template <const auto& op, typename... Types>
bool RegisterComparisons(const char* name) {
  return RegisterComparison<op, float, Types...>(name) &&
         RegisterNarrow<op, tfplug::Half>(name) &&
         RegisterNarrow<op, tfplug::BFloat16>(name);
}

[[maybe_unused]] const bool comparisons =
    RegisterComparisons<kEqual, int64_t, bool>("Equal") &&
    RegisterComparisons<kNotEqual, int64_t, bool>("NotEqual") &&
    RegisterComparisons<kLess, int64_t>("Less") &&
    RegisterComparisons<kLessEqual, int64_t>("LessEqual") &&
    RegisterComparisons<kGreater, int64_t>("Greater") &&
    RegisterComparisons<kGreaterEqual, int64_t>("GreaterEqual");

// ---- Logical and bitwise ops -----------------------------------------------

constexpr auto kAnd = [](const auto& a, const auto& b) { return a && b; };
constexpr auto kOr = [](const auto& a, const auto& b) { return a || b; };
constexpr auto kNot = [](const auto& x) { return !x; };
constexpr auto kBitwiseAnd = [](const auto& a, const auto& b) {
  return a.binaryExpr(b, [](auto x, auto y) { return x & y; });
};
constexpr auto kBitwiseOr = [](const auto& a, const auto& b) {
  return a.binaryExpr(b, [](auto x, auto y) { return x | y; });
};

using AndKernel = Elementwise<kAnd, bool, bool, bool>;
using OrKernel = Elementwise<kOr, bool, bool, bool>;
using NotKernel = Elementwise<kNot, bool, bool>;
TFPLUG_REGISTER_KERNEL(AndKernel, tfplug::KernelDef("LogicalAnd"));
TFPLUG_REGISTER_KERNEL(OrKernel, tfplug::KernelDef("LogicalOr"));
TFPLUG_REGISTER_KERNEL(NotKernel, tfplug::KernelDef("LogicalNot"));

[[maybe_unused]] const bool bitwise_kernels =
    RegisterBinary<kBitwiseAnd, int32_t, int64_t>("BitwiseAnd") &&
    RegisterBinary<kBitwiseOr, int32_t, int64_t>("BitwiseOr");

// ---- SelectV2 --------------------------------------------------------------

constexpr auto kSelect = [](const auto& condition, const auto& a,
                            const auto& b) { return condition.select(a, b); };

template <typename... Types>
bool RegisterSelect(const char* name) {
  return (
      tfplug::RegisterKernel<Elementwise<kSelect, Types, bool, Types, Types>>(
          tfplug::KernelDef(name).TypeConstraint<Types>("T")) &&
      ...);
}
[[maybe_unused]] const bool choices =
    RegisterSelect<float, int32_t, int64_t, bool>("SelectV2");

}  // namespace
}  // namespace cpu_sim
