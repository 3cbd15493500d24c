// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_IR_SCALAR_CODE_H_
#define TFPLUG_IR_SCALAR_CODE_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tfplug/base/narrow_types.h"
#include "tfplug/ir/opcodes.h"

#pragma GCC visibility push(hidden)

// The meaning of each Opcode on the host, for arrays of `n` values. Loops are
// simple, so that compilers vectorize them.
namespace tfplug::ir {

template <class T>
struct TypeTagOf {
  using type = T;
};

// Calls visit with a tag of the C++ type of `type`, a type that can be stored.
template <class Visit>
void VisitStored(DataType type, Visit visit) {
  switch (type) {
    case DataType::kFloat:
      return visit(TypeTagOf<float>());
    case DataType::kDouble:
      return visit(TypeTagOf<double>());
    case DataType::kHalf:
      return visit(TypeTagOf<Half>());
    case DataType::kBfloat16:
      return visit(TypeTagOf<BFloat16>());
    case DataType::kInt8:
      return visit(TypeTagOf<int8_t>());
    case DataType::kInt16:
      return visit(TypeTagOf<int16_t>());
    case DataType::kInt32:
      return visit(TypeTagOf<int32_t>());
    case DataType::kInt64:
      return visit(TypeTagOf<int64_t>());
    case DataType::kUint8:
      return visit(TypeTagOf<uint8_t>());
    case DataType::kUint16:
      return visit(TypeTagOf<uint16_t>());
    case DataType::kUint32:
      return visit(TypeTagOf<uint32_t>());
    case DataType::kUint64:
      return visit(TypeTagOf<uint64_t>());
    default:
      return visit(TypeTagOf<bool>());
  }
}

template <class T>
constexpr bool kIsSmallFloat =
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// The type that T is computed in.
template <class T>
using Computed = std::conditional_t<
    kIsSmallFloat<T>, float,
    std::conditional_t<
        std::is_floating_point_v<T> || std::is_same_v<T, bool> ||
            (sizeof(T) >= 4),
        T, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>>>;

// The same for a type that can be computed in.
template <class Visit>
void VisitComputed(DataType type, Visit visit) {
  VisitStored(type, [&visit](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, Computed<T>>) visit(tag);
  });
}

// Opcode::kCast, also to and from types that are only stored.
template <class To, class From>
To Convert(From value) {
  if constexpr (kIsSmallFloat<From>) {
    return Convert<To>(static_cast<float>(value));
  } else if constexpr (kIsSmallFloat<To>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_floating_point_v<From> &&
                       std::is_integral_v<To>) {
    // C++ does not define the conversion of a number that is out of range.
    using Wide =
        std::conditional_t<sizeof(To) == 8 || std::is_same_v<To, uint32_t>,
                           int64_t, int32_t>;
    constexpr From kLimit = static_cast<From>(
        sizeof(Wide) == 8 ? 9223372036854775808.0 : 2147483648.0);
    if constexpr (std::is_same_v<To, uint64_t>) {
      if (value >= kLimit && value < 2 * kLimit) {
        return static_cast<To>(static_cast<Wide>(value - kLimit)) +
               (uint64_t{1} << 63);
      }
    }
    return static_cast<To>(value >= -kLimit && value < kLimit
                               ? static_cast<Wide>(value)
                               : std::numeric_limits<Wide>::min());
  } else {
    return static_cast<To>(value);
  }
}

// Precedes a loop whose output may be an input but does not overlap one
// otherwise, so that the compiler omits checks.
#ifdef __clang__
#define TFPLUG_INTERNAL_NO_OVERLAP \
  _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"  // not all can be vectorized
#else
#define TFPLUG_INTERNAL_NO_OVERLAP _Pragma("GCC ivdep")
#endif

template <class R, class T, class F>
void Each(int64_t n, R* y, const T* a, F f) {
  TFPLUG_INTERNAL_NO_OVERLAP
  for (int64_t i = 0; i < n; ++i) y[i] = f(a[i]);
}
template <class R, class T, class F>
void Each(int64_t n, R* y, const T* a, const T* b, F f) {
  TFPLUG_INTERNAL_NO_OVERLAP
  for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
}

// Integer arithmetic, in which overflow wraps.
template <class T>
struct Wrapping {
  using U = std::make_unsigned_t<T>;
  static T Add(T a, T b) {
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  }
  static T Sub(T a, T b) {
    return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
  }
  static T Mul(T a, T b) {
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  }
  static T Div(T a, T b) {
    if (b == 0) return 0;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return Sub(0, a);
    return a / b;
  }
  static T Rem(T a, T b) {
    if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
    return a % b;
  }
  static T Pow(T base, T exponent) {
    if (exponent < 0) return base == 1 ? 1 : 0;
    T result = 1;
    for (; exponent != 0; exponent /= 2) {
      if (exponent % 2 != 0) result = Mul(result, base);
      base = Mul(base, base);
    }
    return result;
  }
  static T Shl(T a, T b) {
    return static_cast<U>(b) >= 8 * sizeof(T)
               ? T(0)
               : static_cast<T>(static_cast<U>(a) << static_cast<U>(b));
  }
  static T Shr(T a, T b) {
    constexpr U kLast = 8 * sizeof(T) - 1;
    if (static_cast<U>(b) <= kLast) return static_cast<T>(a >> b);
    return a < 0 ? T(-1) : T(0);
  }
};

template <class T>
T MaxOf(T a, T b) {
  return a > b || a != a ? a : b;
}
template <class T>
T MinOf(T a, T b) {
  return a < b || a != a ? a : b;
}

template <class T>
void ComputeUnary(Opcode opcode, int64_t n, T* y, const T* x) {
  const auto each = [&](auto f) { Each(n, y, x, f); };
  if constexpr (std::is_same_v<T, bool>) {
    return each([](bool v) { return !v; });
  } else if constexpr (std::is_integral_v<T>) {
    switch (opcode) {
      case Opcode::kNeg:
        return each([](T v) { return Wrapping<T>::Sub(0, v); });
      case Opcode::kAbs:
        return each([](T v) { return v < 0 ? Wrapping<T>::Sub(0, v) : v; });
      case Opcode::kSign:
        return each([](T v) { return static_cast<T>((v > 0) - (v < 0)); });
      default:
        return each([](T v) { return static_cast<T>(~v); });
    }
  } else {
    switch (opcode) {
#define TFPLUG_INTERNAL_CASE(opcode, value) \
  case Opcode::opcode:                      \
    return each([](T v) { return static_cast<T>(value); });
      TFPLUG_INTERNAL_CASE(kNeg, -v)
      TFPLUG_INTERNAL_CASE(kAbs, std::fabs(v))
      TFPLUG_INTERNAL_CASE(kSign, v != v ? v : T((v > 0) - (v < 0)))
      TFPLUG_INTERNAL_CASE(kFloor, std::floor(v))
      TFPLUG_INTERNAL_CASE(kCeil, std::ceil(v))
      TFPLUG_INTERNAL_CASE(kRint, std::rint(v))
      TFPLUG_INTERNAL_CASE(kSqrt, std::sqrt(v))
      TFPLUG_INTERNAL_CASE(kRsqrt, 1 / std::sqrt(v))
      TFPLUG_INTERNAL_CASE(kExp, std::exp(v))
      TFPLUG_INTERNAL_CASE(kExpm1, std::expm1(v))
      TFPLUG_INTERNAL_CASE(kLog, std::log(v))
      TFPLUG_INTERNAL_CASE(kLog1p, std::log1p(v))
      TFPLUG_INTERNAL_CASE(kSin, std::sin(v))
      TFPLUG_INTERNAL_CASE(kCos, std::cos(v))
      TFPLUG_INTERNAL_CASE(kTan, std::tan(v))
      TFPLUG_INTERNAL_CASE(kAsin, std::asin(v))
      TFPLUG_INTERNAL_CASE(kAcos, std::acos(v))
      TFPLUG_INTERNAL_CASE(kAtan, std::atan(v))
      TFPLUG_INTERNAL_CASE(kSinh, std::sinh(v))
      TFPLUG_INTERNAL_CASE(kCosh, std::cosh(v))
      TFPLUG_INTERNAL_CASE(kTanh, std::tanh(v))
      TFPLUG_INTERNAL_CASE(kAsinh, std::asinh(v))
      TFPLUG_INTERNAL_CASE(kAcosh, std::acosh(v))
      TFPLUG_INTERNAL_CASE(kAtanh, std::atanh(v))
      TFPLUG_INTERNAL_CASE(kErf, std::erf(v))
      TFPLUG_INTERNAL_CASE(kErfc, std::erfc(v))
#undef TFPLUG_INTERNAL_CASE
      default:
        return each([](T v) {
          int sign;  // std::lgamma writes to a global variable
          if constexpr (sizeof(T) == 4) return ::lgammaf_r(v, &sign);
          return static_cast<T>(::lgamma_r(v, &sign));
        });
    }
  }
}

template <class T>
void ComputeBinary(Opcode opcode, int64_t n, T* y, const T* a, const T* b) {
  const auto each = [&](auto f) { Each(n, y, a, b, f); };
  if constexpr (!std::is_same_v<T, bool>) {
    if (opcode == Opcode::kMax)
      return each([](T u, T v) { return MaxOf(u, v); });
    if (opcode == Opcode::kMin)
      return each([](T u, T v) { return MinOf(u, v); });
  }
  if constexpr (std::is_integral_v<T>) {
    switch (opcode) {
      case Opcode::kAnd:
        return each([](T u, T v) { return static_cast<T>(u & v); });
      case Opcode::kOr:
        return each([](T u, T v) { return static_cast<T>(u | v); });
      case Opcode::kXor:
        return each([](T u, T v) { return static_cast<T>(u ^ v); });
      default:
        break;
    }
  }
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    switch (opcode) {
      case Opcode::kAdd:
        return each([](T u, T v) { return Wrapping<T>::Add(u, v); });
      case Opcode::kSub:
        return each([](T u, T v) { return Wrapping<T>::Sub(u, v); });
      case Opcode::kMul:
        return each([](T u, T v) { return Wrapping<T>::Mul(u, v); });
      case Opcode::kDiv:
        return each([](T u, T v) { return Wrapping<T>::Div(u, v); });
      case Opcode::kRem:
        return each([](T u, T v) { return Wrapping<T>::Rem(u, v); });
      case Opcode::kPow:
        return each([](T u, T v) { return Wrapping<T>::Pow(u, v); });
      case Opcode::kShl:
        return each([](T u, T v) { return Wrapping<T>::Shl(u, v); });
      default:
        return each([](T u, T v) { return Wrapping<T>::Shr(u, v); });
    }
  } else if constexpr (std::is_floating_point_v<T>) {
    switch (opcode) {
      case Opcode::kAdd:
        return each([](T u, T v) { return u + v; });
      case Opcode::kSub:
        return each([](T u, T v) { return u - v; });
      case Opcode::kMul:
        return each([](T u, T v) { return u * v; });
      case Opcode::kDiv:
        return each([](T u, T v) { return u / v; });
      case Opcode::kRem:
        return each([](T u, T v) { return std::fmod(u, v); });
      case Opcode::kPow:
        return each([](T u, T v) { return std::pow(u, v); });
      default:
        return each([](T u, T v) { return std::atan2(u, v); });
    }
  }
}

template <class T>
void ComputeComparison(Opcode opcode, int64_t n, bool* y, const T* a,
                       const T* b) {
  switch (opcode) {
    case Opcode::kIsNan:
      return Each(n, y, a, [](T v) { return v != v; });
    case Opcode::kEq:
      return Each(n, y, a, b, [](T u, T v) { return u == v; });
    case Opcode::kNe:
      return Each(n, y, a, b, [](T u, T v) { return u != v; });
    case Opcode::kLt:
      return Each(n, y, a, b, [](T u, T v) { return u < v; });
    default:
      return Each(n, y, a, b, [](T u, T v) { return u <= v; });
  }
}

#ifdef __clang__
#pragma clang diagnostic pop
#endif

}  // namespace tfplug::ir

#pragma GCC visibility pop

#endif  // TFPLUG_IR_SCALAR_CODE_H_
