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
#include "tfplug/ir/reduce_kind.h"

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

// Does the same for a type that can be computed in.
template <class Visit>
void VisitComputed(DataType type, Visit visit) {
  VisitStored(type, [&visit](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, Computed<T>>) visit(tag);
  });
}

// Computes Opcode::kCast, also to and from types that are only stored.
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

// The functions that definitions in opcodes.def call and that <cmath> lacks.
template <class T>
using UnsignedOf =
    std::conditional_t<sizeof(T) == sizeof(uint64_t), uint64_t, uint32_t>;

template <class T>
T div(T a, T b) {
  if (b == 0) return 0;
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) {
    return static_cast<T>(0 - static_cast<UnsignedOf<T>>(a));
  }
  return a / b;
}
template <class T>
T rem(T a, T b) {
  if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
  return a % b;
}
template <class T>
T pow(T base, T exponent) {
  if (exponent < 0) return base == 1 ? 1 : 0;
  UnsignedOf<T> result = 1, power = static_cast<UnsignedOf<T>>(base);
  for (; exponent != 0; exponent /= 2) {
    if (exponent % 2 != 0) result *= power;
    power *= power;
  }
  return static_cast<T>(result);
}
template <class T>
T shl(T a, T b) {
  using U = UnsignedOf<T>;
  return static_cast<U>(b) >= 8 * sizeof(T)
             ? T(0)
             : static_cast<T>(static_cast<U>(a) << static_cast<U>(b));
}
template <class T>
T shr(T a, T b) {
  if (static_cast<UnsignedOf<T>>(b) < 8 * sizeof(T)) {
    return static_cast<T>(a >> b);
  }
  return a < 0 ? T(-1) : T(0);
}
template <class T>
T rsqrt(T a) {
  return 1 / std::sqrt(a);
}
template <class T>
T lgamma(T a) {
  int sign;  // std::lgamma writes to a global variable
  if constexpr (sizeof(T) == sizeof(float)) return ::lgammaf_r(a, &sign);
  return static_cast<T>(::lgamma_r(a, &sign));
}

// Return the result of a definition for floats of type T. It has another type if
// it calls C's function of doubles, because Scalar does not list the one of
// <cmath>. An opcode without floats has no definition.
template <class R, class T, class V>
R FloatResult(V value) {
  static_assert(std::is_same_v<V, T> || std::is_same_v<R, bool>,
                "add the function in the opcode's row to the using-declaration "
                "in Scalar");
  return value;
}
template <class R, class T>
R FloatResult() {
  return R();
}

// The definition of an opcode: Scalar<Opcode::kAdd>()(a, b) is a + b.
template <Opcode>
struct Scalar;

#define TFPLUG_INTERNAL_OPCODE(name, text, function, arity, result, floats,    \
                               integers, bools, ulps)                          \
  template <>                                                                  \
  struct Scalar<Opcode::k##name> {                                             \
    template <class T, class U = UnsignedOf<T>, class R = result>              \
    R operator()(T a, [[maybe_unused]] T b = T()) const {                      \
      if constexpr (std::is_same_v<T, bool>) {                                 \
        return R(bools);                                                       \
      } else if constexpr (std::is_integral_v<T>) {                            \
        return R(integers);                                                    \
      } else {                                                                 \
        using std::acos, std::acosh, std::asin, std::asinh, std::atan,         \
            std::atan2, std::atanh, std::ceil, std::cos, std::cosh, std::erf,  \
            std::erfc, std::exp, std::expm1, std::fabs, std::floor, std::fmod, \
            std::log, std::log1p, std::pow, std::rint, std::sin, std::sinh,    \
            std::sqrt, std::tan, std::tanh;                                    \
        return FloatResult<R, T>(floats);                                      \
      }                                                                        \
    }                                                                          \
  };
#include "tfplug/ir/opcodes.def"

// Calls use(Scalar) with the definition of `opcode`, one of kSome.
template <Opcode... kSome, class Use>
[[gnu::always_inline]] inline void VisitScalar(Opcode opcode, Use use) {
  (void)((opcode == kSome && (use(Scalar<kSome>()), true)) || ...);
}

// Calls use with the function that combines two values of T in a Reduce.
template <class T, class Use>
void VisitCombine(ReduceKind kind, Use use) {
  const Opcode opcode = CombineOpcode(kind, DataTypeOf<T>());
  if constexpr (std::is_same_v<T, bool>) {
    VisitScalar<Opcode::kOr, Opcode::kAnd>(opcode, use);
  } else {
    VisitScalar<Opcode::kAdd, Opcode::kMul, Opcode::kMax, Opcode::kMin>(opcode,
                                                                        use);
  }
}

// Sets y[i] = opcode(a[i], b[i]) if opcodes.def defines it for T.
template <Opcode kOpcode, class T>
[[gnu::always_inline]] inline void ComputeEach(int64_t n, void* y, const T* a,
                                               const T* b) {
  constexpr OpcodeInfo kInfo = InfoOf(kOpcode);
  if constexpr (Allows(kInfo.types, DataTypeOf<T>())) {
    using R = std::conditional_t<kInfo.gives_bool, bool, T>;
    if constexpr (kInfo.arity == 1) {
      Each(n, static_cast<R*>(y), a, [](T v) { return Scalar<kOpcode>()(v); });
    } else {
      Each(n, static_cast<R*>(y), a, b, Scalar<kOpcode>());
    }
  }
}
template <class T>
void Compute(Opcode opcode, int64_t n, void* y, const T* a, const T* b) {
  switch (opcode) {
#define TFPLUG_INTERNAL_OPCODE(name, ...) \
  case Opcode::k##name:                   \
    return ComputeEach<Opcode::k##name>(n, y, a, b);
#include "tfplug/ir/opcodes.def"
    default:
      return;
  }
}

#ifdef __clang__
#pragma clang diagnostic pop
#endif

}  // namespace tfplug::ir

#pragma GCC visibility pop

#endif  // TFPLUG_IR_SCALAR_CODE_H_
