// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/elementwise.h"

// Mathematical functions beyond arithmetic.
namespace cpu_sim {
namespace {

// ---- Unary ops ------------------------------------------------------------

constexpr auto kSin = [](const auto& x) { return x.sin(); };
constexpr auto kCos = [](const auto& x) { return x.cos(); };
constexpr auto kTan = [](const auto& x) { return x.tan(); };
constexpr auto kSinh = [](const auto& x) { return x.sinh(); };
constexpr auto kCosh = [](const auto& x) { return x.cosh(); };
constexpr auto kAtan = [](const auto& x) { return x.atan(); };
constexpr auto kCeil = [](const auto& x) { return x.ceil(); };
// Rounds halves to the even integer.
constexpr auto kRint = [](const auto& x) { return x.rint(); };
// The C library's functions, which are exact for small arguments too.
constexpr auto kErf = [](const auto& x) {
  return x.unaryExpr([](auto value) { return std::erf(value); });
};
constexpr auto kErfc = [](const auto& x) {
  return x.unaryExpr([](auto value) { return std::erfc(value); });
};

[[maybe_unused]] const bool functions =
    RegisterUnary<kSin, float>("Sin") && RegisterUnary<kCos, float>("Cos") &&
    RegisterUnary<kTan, float>("Tan") && RegisterUnary<kSinh, float>("Sinh") &&
    RegisterUnary<kCosh, float>("Cosh") &&
    RegisterUnary<kAtan, float>("Atan") &&
    RegisterUnary<kCeil, float>("Ceil") &&
    RegisterUnary<kRint, float>("Rint") &&
    RegisterUnary<kRint, float>("Round") && RegisterUnary<kErf, float>("Erf") &&
    RegisterUnary<kErfc, float>("Erfc");

// ---- NaN and infinity ------------------------------------------------------

constexpr auto kIsNan = [](const auto& x) { return x != x; };
constexpr auto kIsInf = [](const auto& x) {
  return x.abs() == std::numeric_limits<float>::infinity();
};
constexpr auto kIsFinite = [](const auto& x) {
  return x.abs() < std::numeric_limits<float>::infinity();
};

using IsNan = Elementwise<kIsNan, bool, float>;
using IsInf = Elementwise<kIsInf, bool, float>;
using IsFinite = Elementwise<kIsFinite, bool, float>;
TFPLUG_REGISTER_KERNEL(IsNan,
                       tfplug::KernelDef("IsNan").TypeConstraint<float>("T"));
TFPLUG_REGISTER_KERNEL(IsInf,
                       tfplug::KernelDef("IsInf").TypeConstraint<float>("T"));
TFPLUG_REGISTER_KERNEL(
    IsFinite, tfplug::KernelDef("IsFinite").TypeConstraint<float>("T"));

// ---- Binary ops -----------------------------------------------------------

constexpr auto kAtan2 = [](const auto& y, const auto& x) {
  return y.binaryExpr(x, [](auto a, auto b) { return std::atan2(a, b); });
};
// These are 0 where x is 0, for any y.
constexpr auto kXdivy = [](const auto& x, const auto& y) {
  return (x == 0).select(x, x / y);
};
constexpr auto kXlogy = [](const auto& x, const auto& y) {
  return (x == 0).select(x, x * y.log());
};
constexpr auto kXlog1py = [](const auto& x, const auto& y) {
  return (x == 0).select(x, x * y.log1p());
};

// Rounds down. Integer division by 0 gives 0, because a device cannot raise an
// error on the host.
constexpr auto kFloorDiv = [](const auto& a, const auto& b) {
  return (a / b).floor();
};
constexpr auto kFloorDivInteger = [](const auto& a, const auto& b) {
  return a.binaryExpr(b, [](auto x, auto y) {
    if (y == 0) return y;
    // INT64_MIN / -1 traps on x86.
    if (y == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(x));
    const bool rounds_up = x % y != 0 && (x < 0) != (y < 0);
    return x / y - (rounds_up ? 1 : 0);
  });
};
// The remainder has the divisor's sign.
constexpr auto kFloorMod = [](const auto& a, const auto& b) {
  return a.binaryExpr(b, [](auto x, auto y) {
    const auto rest = std::fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  });
};

[[maybe_unused]] const bool binary_functions =
    RegisterBinary<kAtan2, float>("Atan2") &&
    RegisterBinary<kXdivy, float>("Xdivy") &&
    RegisterBinary<kXlogy, float>("Xlogy") &&
    RegisterBinary<kXlog1py, float>("Xlog1py") &&
    RegisterBinary<kFloorDiv, float>("FloorDiv") &&
    RegisterBinary<kFloorDivInteger, int64_t>("FloorDiv") &&
    RegisterBinary<kFloorMod, float>("FloorMod");

// ---- ClipByValue: bounds are scalars or of x's shape; NaN stays NaN ---------

constexpr auto kClip = [](const auto& x, const auto& low, const auto& high) {
  return (x < low).select(low, (x > high).select(high, x));
};

template <typename... Types>
bool RegisterClip() {
  return (
      tfplug::RegisterKernel<Elementwise<kClip, Types, Types, Types, Types>>(
          tfplug::KernelDef("ClipByValue").TypeConstraint<Types>("T")) &&
      ...);
}
[[maybe_unused]] const bool clips = RegisterClip<float, int64_t>();

}  // namespace
}  // namespace cpu_sim
