// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_IR_REDUCTION_H_
#define TFPLUG_IR_REDUCTION_H_

#include <cstdint>
#include <limits>

#include "tfplug/ir/expression.h"
#include "tfplug/ir/reduce_kind.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The computation of a Reduce: `map` of the inputs gives the values to combine,
// `finish` computes the outputs from the result.
struct Reduction {
  ReduceKind kind = ReduceKind::kSum;
  // Has one output, of a type that is computed in (ComputeType). Values are
  // combined in that type or a more accurate one.
  Expression map;
  // Input 0 is the combined value; the others are the inputs of the Reduce that
  // follow those of `map`.
  Expression finish;

  // Returns a number that two reductions of this process share if, and only if,
  // they are equal.
  uint64_t id() const {
    return (uint64_t{map.id()} << 31 | finish.id()) << 2 |
           static_cast<uint64_t>(kind);
  }
  DataType type() const { return map.outputs()[0].type; }
};

// Returns the value of a reduction of no elements, as Instruction::bits.
inline uint64_t ReduceIdentity(ReduceKind kind, DataType type) {
  using Limits = std::numeric_limits<double>;
  switch (kind) {
    case ReduceKind::kSum:
      return 0;
    case ReduceKind::kProduct:
      return ConstantBits(type, 1, 1);
    default:
      break;
  }
  const bool is_max = kind == ReduceKind::kMax;
  if (IsFloat(type)) {
    return ConstantBits(type, is_max ? -Limits::infinity() : Limits::infinity(),
                        0);
  }
  switch (type) {
    case DataType::kInt32:
      return is_max ? static_cast<uint64_t>(int64_t{INT32_MIN}) : INT32_MAX;
    case DataType::kInt64:
      return is_max ? static_cast<uint64_t>(INT64_MIN) : INT64_MAX;
    case DataType::kUint32:
      return is_max ? 0 : UINT32_MAX;
    case DataType::kUint64:
      return is_max ? 0 : UINT64_MAX;
    default:
      return is_max ? 0 : 1;
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_IR_REDUCTION_H_
