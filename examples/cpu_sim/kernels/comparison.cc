// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "kernels/elementwise.h"

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

// int32 is left to core, which has it for every device, in host memory.
[[maybe_unused]] const bool comparisons =
    RegisterComparison<kEqual, float, int64_t, bool>("Equal") &&
    RegisterComparison<kNotEqual, float, int64_t, bool>("NotEqual") &&
    RegisterComparison<kLess, float, int64_t>("Less") &&
    RegisterComparison<kLessEqual, float, int64_t>("LessEqual") &&
    RegisterComparison<kGreater, float, int64_t>("Greater") &&
    RegisterComparison<kGreaterEqual, float, int64_t>("GreaterEqual");

// ---- Logic, of truth values and of bits ------------------------------------

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

// ---- Choices ---------------------------------------------------------------

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
