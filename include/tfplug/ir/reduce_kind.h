// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_IR_REDUCE_KIND_H_
#define TFPLUG_IR_REDUCE_KIND_H_

#include <cstdint>

#include "tfplug/ir/opcodes.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The operation with which Reduce combines values. Max and Min are NaN if any
// value is NaN; of bools they are "any" and "all".
enum class ReduceKind : uint8_t { kSum, kProduct, kMax, kMin };

namespace ir {
// Returns the opcode that combines two values of a type.
constexpr Opcode CombineOpcode(ReduceKind kind, DataType type) {
  const bool is_bool = type == DataType::kBool;
  switch (kind) {
    case ReduceKind::kSum:
      return is_bool ? Opcode::kOr : Opcode::kAdd;
    case ReduceKind::kProduct:
      return is_bool ? Opcode::kAnd : Opcode::kMul;
    case ReduceKind::kMax:
      return is_bool ? Opcode::kOr : Opcode::kMax;
    default:
      return is_bool ? Opcode::kAnd : Opcode::kMin;
  }
}
}  // namespace ir

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_IR_REDUCE_KIND_H_
