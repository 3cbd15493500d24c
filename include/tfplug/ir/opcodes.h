// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_IR_OPCODES_H_
#define TFPLUG_IR_OPCODES_H_

#include <cstddef>
#include <cstdint>

#include "tfplug/base/data_type.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The operations of an Expression, which opcodes.def defines.
enum class Opcode : uint8_t {
#define TFPLUG_INTERNAL_SPECIAL(name, ...) k##name,
#define TFPLUG_INTERNAL_OPCODE(name, ...) k##name,
#include "tfplug/ir/opcodes.def"
};

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
  double ulps;  // the allowed error of a function of floats
};

// Indexed by Opcode.
inline constexpr OpcodeInfo kOpcodes[] = {
#define TFPLUG_INTERNAL_SPECIAL(name, text, arity, types) \
  {text, arity, types, false, 0},
#define TFPLUG_INTERNAL_OPCODE(name, text, function, arity, result, floats, \
                               integers, bools, ulps)                       \
  {text, arity,                                                             \
   (sizeof(#floats) > 1 ? kFloats : 0) |                                    \
       (sizeof(#integers) > 1 ? kIntegers : 0) |                            \
       (sizeof(#bools) > 1 ? kBools : 0),                                   \
   #result[0] == 'b', ulps},
#include "tfplug/ir/opcodes.def"
};

constexpr OpcodeInfo InfoOf(Opcode opcode) {
  return kOpcodes[static_cast<size_t>(opcode)];
}
}  // namespace ir

inline constexpr int kOpcodeCount =
    static_cast<int>(sizeof(ir::kOpcodes) / sizeof(ir::OpcodeInfo));

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_IR_OPCODES_H_
