// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_REFERENCE_VALUE_H_
#define TFPLUG_PRIMITIVES_REFERENCE_VALUE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tfplug/base/narrow_types.h"
#include "tfplug/ir/expression.h"

#pragma GCC visibility push(hidden)

// The value of one instruction of an expression, in slow and obvious code that
// shares no arithmetic with what it judges: integers are computed without limits
// and then wrapped, floats in double and then rounded. It shares the rounding of
// Half and BFloat16 (base/narrow_types.h) and the C library's functions, such as
// exp, whose errors it cannot find.
namespace tfplug::primitives {

__extension__ typedef __int128 WideInteger;

// A value of a type that is computed in: a float or double is `real`, an
// integer or bool `integer`.
struct ReferenceValue {
  double real = 0;
  WideInteger integer = 0;
};

inline int ReferenceBits(DataType type) {
  return 8 * static_cast<int>(DataTypeSize(type));
}
inline bool ReferenceIsSigned(DataType type) {
  return type == DataType::kInt8 || type == DataType::kInt16 ||
         type == DataType::kInt32 || type == DataType::kInt64;
}

// Returns the value of an integer type that is equal modulo a power of two.
inline ReferenceValue Wrapped(DataType type, WideInteger integer) {
  const WideInteger count = WideInteger{1} << ReferenceBits(type);
  WideInteger rest = integer & (count - 1);
  if (ReferenceIsSigned(type) && rest >= count / 2) rest -= count;
  return {0, rest};
}

// Returns the value of a float type that is nearest to a number.
inline ReferenceValue Rounded(DataType type, double real) {
  if (type == DataType::kDouble) return {real, 0};
  const auto single = static_cast<float>(real);
  if (type == DataType::kHalf) return {float{Half(single)}, 0};
  if (type == DataType::kBfloat16) return {float{BFloat16(single)}, 0};
  return {single, 0};
}

// ---- Memory -----------------------------------------------------------------

template <class T>
T ReadAs(const void* memory) {
  T value;
  std::memcpy(static_cast<void*>(&value), memory, sizeof(value));
  return value;
}
template <class T>
void WriteAs(T value, void* memory) {
  std::memcpy(memory, &value, sizeof(value));
}

// Convert between float and double. A NaN keeps its bits, which a bitcast shows;
// processors set one of them.
inline double WidenedFloat(float single) {
  if (!std::isnan(single)) return single;
  const auto bits = ReadAs<uint32_t>(&single);
  const uint64_t wide = uint64_t{bits >> 31} << 63 | uint64_t{0x7ff} << 52 |
                        uint64_t{bits & 0x7fffff} << 29;
  return ReadAs<double>(&wide);
}
inline float NarrowedDouble(double real) {
  if (!std::isnan(real)) return static_cast<float>(real);
  const auto bits = ReadAs<uint64_t>(&real);
  const auto mantissa = static_cast<uint32_t>(bits >> 29 & 0x7fffff);
  const uint32_t narrow = static_cast<uint32_t>(bits >> 63) << 31 |
                          0x7f800000u | (mantissa == 0 ? 1 : mantissa);
  return ReadAs<float>(&narrow);
}

// Returns the element of `type` at an address.
inline ReferenceValue ReadElement(DataType type, const void* memory) {
  switch (type) {
    case DataType::kFloat:
      return {WidenedFloat(ReadAs<float>(memory)), 0};
    case DataType::kDouble:
      return {ReadAs<double>(memory), 0};
    case DataType::kHalf:
      return {float{ReadAs<Half>(memory)}, 0};
    case DataType::kBfloat16:
      return {float{ReadAs<BFloat16>(memory)}, 0};
    default: {
      uint64_t bits = 0;  // little-endian
      std::memcpy(&bits, memory, DataTypeSize(type));
      return Wrapped(type, bits);
    }
  }
}

// Writes a value of `type` to an address.
inline void WriteElement(DataType type, const ReferenceValue& value,
                         void* memory) {
  switch (type) {
    case DataType::kFloat:
      return WriteAs(NarrowedDouble(value.real), memory);
    case DataType::kDouble:
      return WriteAs(value.real, memory);
    case DataType::kHalf:
      return WriteAs(Half(static_cast<float>(value.real)), memory);
    case DataType::kBfloat16:
      return WriteAs(BFloat16(static_cast<float>(value.real)), memory);
    default: {
      const auto bits = static_cast<uint64_t>(value.integer);
      std::memcpy(memory, &bits, DataTypeSize(type));
    }
  }
}

// Returns a constant, whose bits are those of Instruction::bits.
inline ReferenceValue ConstantOf(DataType type, uint64_t bits) {
  if (type == DataType::kBool) return {0, bits != 0};
  if (!IsFloat(type)) return Wrapped(ComputeType(type), bits);
  return Rounded(ComputeType(type), ReadAs<double>(&bits));
}

// ---- Conversions ------------------------------------------------------------

// Returns `value`, of type `from`, as `to`, which may be a type that is only
// stored.
inline ReferenceValue Converted(DataType from, DataType to,
                                const ReferenceValue& value) {
  const double real = value.real;
  if (to == DataType::kBool) {
    return {0, IsFloat(from) ? real != 0 : value.integer != 0};
  }
  if (IsFloat(to)) {
    if (IsFloat(from)) return Rounded(to, real);
    return to == DataType::kDouble
               ? ReferenceValue{static_cast<double>(value.integer), 0}
               : Rounded(to, static_cast<float>(value.integer));
  }
  if (!IsFloat(from)) return Wrapped(to, value.integer);
  const int bits = DataTypeSize(to) == 8 || to == DataType::kUint32 ? 64 : 32;
  const double low = -std::ldexp(1, bits - 1);
  const double high = to == DataType::kUint64 ? std::ldexp(1, 64) : -low;
  const bool fits = real >= low && real < high;
  return Wrapped(to, static_cast<WideInteger>(fits ? real : low));
}

// ---- Opcodes ----------------------------------------------------------------

// Returns the result of an opcode of floats that gives a float.
inline double ComputeReal(Opcode opcode, double a, double b) {
  int sign;
  switch (opcode) {
    case Opcode::kNeg:
      return -a;
    case Opcode::kAbs:
      return std::fabs(a);
    case Opcode::kSign:
      return std::isnan(a) ? a : a > 0 ? 1 : a < 0 ? -1 : 0;
    case Opcode::kFloor:
      return std::floor(a);
    case Opcode::kCeil:
      return std::ceil(a);
    case Opcode::kRint:
      return std::nearbyint(a);
    case Opcode::kSqrt:
      return std::sqrt(a);
    case Opcode::kRsqrt:
      return 1 / std::sqrt(a);
    case Opcode::kExp:
      return std::exp(a);
    case Opcode::kExpm1:
      return std::expm1(a);
    case Opcode::kLog:
      return std::log(a);
    case Opcode::kLog1p:
      return std::log1p(a);
    case Opcode::kSin:
      return std::sin(a);
    case Opcode::kCos:
      return std::cos(a);
    case Opcode::kTan:
      return std::tan(a);
    case Opcode::kAsin:
      return std::asin(a);
    case Opcode::kAcos:
      return std::acos(a);
    case Opcode::kAtan:
      return std::atan(a);
    case Opcode::kSinh:
      return std::sinh(a);
    case Opcode::kCosh:
      return std::cosh(a);
    case Opcode::kTanh:
      return std::tanh(a);
    case Opcode::kAsinh:
      return std::asinh(a);
    case Opcode::kAcosh:
      return std::acosh(a);
    case Opcode::kAtanh:
      return std::atanh(a);
    case Opcode::kErf:
      return std::erf(a);
    case Opcode::kErfc:
      return std::erfc(a);
    case Opcode::kLgamma:
      return ::lgamma_r(a, &sign);
    case Opcode::kAdd:
      return a + b;
    case Opcode::kSub:
      return a - b;
    case Opcode::kMul:
      return a * b;
    case Opcode::kDiv:
      return a / b;
    case Opcode::kRem:
      return std::fmod(a, b);
    case Opcode::kPow:
      return std::pow(a, b);
    case Opcode::kAtan2:
      return std::atan2(a, b);
    case Opcode::kMax:
      return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b);
    case Opcode::kMin:
      return std::isnan(a) ? a : std::isnan(b) ? b : std::min(a, b);
    default:
      return std::nan("");
  }
}

// Returns the lowest 64 bits of a product.
inline WideInteger ProductOf(WideInteger a, WideInteger b) {
  return static_cast<uint64_t>(a) * static_cast<uint64_t>(b);
}
// Returns the lowest 64 bits of a power.
inline WideInteger PowerOf(WideInteger a, WideInteger n) {
  if (n < 0) return a == 1 ? 1 : 0;
  if (n == 0) return 1;
  const WideInteger root = PowerOf(a, n / 2);
  const WideInteger even = ProductOf(root, root);
  return n % 2 == 0 ? even : ProductOf(even, a);
}

// Returns the result of an opcode of integers or bools that gives the same
// type, before it wraps.
inline WideInteger ComputeInteger(Opcode opcode, DataType type, WideInteger a,
                                  WideInteger b) {
  const bool is_small_shift = b >= 0 && b < ReferenceBits(type);
  switch (opcode) {
    case Opcode::kNeg:
      return -a;
    case Opcode::kAbs:
      return a < 0 ? -a : a;
    case Opcode::kSign:
      return a < 0 ? -1 : a > 0 ? 1 : 0;
    case Opcode::kNot:
      return type == DataType::kBool ? 1 - a : -1 - a;
    case Opcode::kAdd:
      return a + b;
    case Opcode::kSub:
      return a - b;
    case Opcode::kMul:
      return ProductOf(a, b);
    case Opcode::kDiv:
      return b == 0 ? 0 : a / b;
    case Opcode::kRem:
      return b == 0 ? 0 : a % b;
    case Opcode::kPow:
      return PowerOf(a, b);
    case Opcode::kMax:
      return std::max(a, b);
    case Opcode::kMin:
      return std::min(a, b);
    case Opcode::kAnd:
      return a & b;
    case Opcode::kOr:
      return a | b;
    case Opcode::kXor:
      return a ^ b;
    case Opcode::kShl:
      return is_small_shift ? a * (WideInteger{1} << static_cast<int>(b)) : 0;
    case Opcode::kShr:
      return is_small_shift ? a >> static_cast<int>(b) : a < 0 ? -1 : 0;
    default:
      return 0;
  }
}

// Returns whether a comparison holds.
template <class T>
bool Holds(Opcode opcode, T a, T b) {
  switch (opcode) {
    case Opcode::kIsNan:
      return a != a;
    case Opcode::kEq:
      return a == b;
    case Opcode::kNe:
      return a != b;
    case Opcode::kLt:
      return a < b;
    default:
      return a <= b;
  }
}

// Returns the result of an opcode that computes in `type`.
inline ReferenceValue ComputeOpcode(Opcode opcode, DataType type,
                                    const ReferenceValue& a,
                                    const ReferenceValue& b) {
  switch (opcode) {
    case Opcode::kIsNan:
    case Opcode::kEq:
    case Opcode::kNe:
    case Opcode::kLt:
    case Opcode::kLe:
      return {0, IsFloat(type) ? Holds(opcode, a.real, b.real)
                               : Holds(opcode, a.integer, b.integer)};
    default:
      return IsFloat(type)
                 ? Rounded(type, ComputeReal(opcode, a.real, b.real))
                 : Wrapped(type,
                           ComputeInteger(opcode, type, a.integer, b.integer));
  }
}

}  // namespace tfplug::primitives

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_REFERENCE_VALUE_H_
