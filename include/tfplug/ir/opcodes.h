// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_IR_OPCODES_H_
#define TFPLUG_IR_OPCODES_H_

#include <cstddef>
#include <cstdint>

#include "tfplug/base/data_type.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The operations of an Expression.
enum class Opcode : uint8_t {
  // The element of input `a`.
  kInput,
  // Element `b`, an int64, of the axis of input `a` (Operand::axis_size); 0 if
  // it is out of range.
  kElement,
  kConstant,
  // Conversion to the type of the result. A float becomes an integer by
  // truncation: INT_MIN of 32 or 64 bits if it is out of range or NaN.
  // Integers wrap. To bool: whether it differs from 0.
  kCast,
  // The same bits as another type of the same size.
  kBitcast,
  // Choose `b` where `a`, a bool, is true, and `c` elsewhere.
  kSelect,
  // Unary.
  kNeg,
  kAbs,
  kSign,
  kNot,
  kFloor,
  kCeil,
  kRint,
  kIsNan,
  kSqrt,
  kRsqrt,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kErf,
  kErfc,
  kLgamma,
  // Binary. Sums, products and differences of integers wrap.
  kAdd,
  kSub,
  kMul,
  // Quotient and remainder; of integers truncated, and 0 if the divisor is 0.
  kDiv,
  kRem,
  kPow,
  kAtan2,
  // NaN if either is NaN.
  kMax,
  kMin,
  // Of bools or of the bits of integers.
  kAnd,
  kOr,
  kXor,
  // Shifts by less than the number of bits; a larger one gives 0, or for kShr
  // of a negative number -1.
  kShl,
  kShr,
  kEq,
  kNe,
  kLt,
  kLe,
};
inline constexpr int kOpcodeCount = static_cast<int>(Opcode::kLe) + 1;

constexpr bool IsFloat(DataType type) {
  return type == DataType::kFloat || type == DataType::kDouble ||
         type == DataType::kHalf || type == DataType::kBfloat16;
}

// Returns the type in which an expression computes values of `type`: float for
// half and bfloat16, int32 and uint32 for narrower integers, else the type
// itself; DataType(0) for types that expressions do not have.
constexpr DataType ComputeType(DataType type) {
  switch (type) {
    case DataType::kFloat:
    case DataType::kHalf:
    case DataType::kBfloat16:
      return DataType::kFloat;
    case DataType::kInt32:
    case DataType::kInt16:
    case DataType::kInt8:
      return DataType::kInt32;
    case DataType::kUint32:
    case DataType::kUint16:
    case DataType::kUint8:
      return DataType::kUint32;
    case DataType::kDouble:
    case DataType::kInt64:
    case DataType::kUint64:
    case DataType::kBool:
      return type;
    default:
      return DataType(0);
  }
}

// Sets of types that an operation computes in.
namespace ir {
enum TypeSet : uint8_t { kFloats = 1, kIntegers = 2, kBools = 4 };
inline constexpr uint8_t kNumbers = kFloats | kIntegers;
inline constexpr uint8_t kBits = kIntegers | kBools;
inline constexpr uint8_t kAnything = kNumbers | kBools;

constexpr bool Allows(uint8_t set, DataType type) {
  const int bit = type == DataType::kBool ? kBools
                  : IsFloat(type)         ? kFloats
                                          : kIntegers;
  return (set & bit) != 0;
}

struct OpcodeInfo {
  const char* name;
  int arity;  // the number of values that it uses
  uint8_t types;
  bool gives_bool;
};

// Indexed by Opcode.
inline constexpr OpcodeInfo kOpcodes[] = {
    {"input", 0, kAnything, false},    {"element", 0, kAnything, false},
    {"constant", 0, kAnything, false}, {"cast", 1, kAnything, false},
    {"bitcast", 1, kNumbers, false},   {"select", 3, kAnything, false},
    {"neg", 1, kNumbers, false},       {"abs", 1, kNumbers, false},
    {"sign", 1, kNumbers, false},      {"not", 1, kBits, false},
    {"floor", 1, kFloats, false},      {"ceil", 1, kFloats, false},
    {"rint", 1, kFloats, false},       {"isnan", 1, kFloats, true},
    {"sqrt", 1, kFloats, false},       {"rsqrt", 1, kFloats, false},
    {"exp", 1, kFloats, false},        {"expm1", 1, kFloats, false},
    {"log", 1, kFloats, false},        {"log1p", 1, kFloats, false},
    {"sin", 1, kFloats, false},        {"cos", 1, kFloats, false},
    {"tan", 1, kFloats, false},        {"asin", 1, kFloats, false},
    {"acos", 1, kFloats, false},       {"atan", 1, kFloats, false},
    {"sinh", 1, kFloats, false},       {"cosh", 1, kFloats, false},
    {"tanh", 1, kFloats, false},       {"asinh", 1, kFloats, false},
    {"acosh", 1, kFloats, false},      {"atanh", 1, kFloats, false},
    {"erf", 1, kFloats, false},        {"erfc", 1, kFloats, false},
    {"lgamma", 1, kFloats, false},     {"add", 2, kNumbers, false},
    {"sub", 2, kNumbers, false},       {"mul", 2, kNumbers, false},
    {"div", 2, kNumbers, false},       {"rem", 2, kNumbers, false},
    {"pow", 2, kNumbers, false},       {"atan2", 2, kFloats, false},
    {"max", 2, kNumbers, false},       {"min", 2, kNumbers, false},
    {"and", 2, kBits, false},          {"or", 2, kBits, false},
    {"xor", 2, kBits, false},          {"shl", 2, kIntegers, false},
    {"shr", 2, kIntegers, false},      {"eq", 2, kAnything, true},
    {"ne", 2, kAnything, true},        {"lt", 2, kNumbers, true},
    {"le", 2, kNumbers, true},
};
static_assert(sizeof(kOpcodes) / sizeof(OpcodeInfo) == kOpcodeCount,
              "tfplug: kOpcodes has a row for each Opcode");

constexpr OpcodeInfo InfoOf(Opcode opcode) {
  return kOpcodes[static_cast<size_t>(opcode)];
}
}  // namespace ir

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_IR_OPCODES_H_
