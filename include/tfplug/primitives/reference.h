// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_REFERENCE_H_
#define TFPLUG_PRIMITIVES_REFERENCE_H_

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "tfplug/ir/reduction.h"
#include "tfplug/ir/view.h"
#include "tfplug/primitives/reference_value.h"

#pragma GCC visibility push(hidden)

// The required primitives on host memory, one element after the other: the
// definition of their results, and the oracle for the tests of every backend.
// host.h has fast ones for a device whose memory the host can access.
namespace tfplug {
namespace primitives_internal {

using primitives::ReferenceValue;
using ElementIndex = std::array<int64_t, kMaxViewRank>;

// Calls visit() with `index` at each index of the dimensions [begin, end) of
// `shape`.
template <class Visit>
void ForEachIndex(const Operand& shape, int begin, int end, ElementIndex& index,
                  Visit visit) {
  if (begin == end) return visit();
  int64_t& i = index[static_cast<size_t>(begin)];
  for (i = 0; i < shape.dim(begin); ++i) {
    ForEachIndex(shape, begin + 1, end, index, visit);
  }
}

// An element of an operand.
struct ReferenceElement {
  const Operand* operand;
  int64_t offset;

  // The dimensions after the first `rank` ones are at index 0.
  ReferenceElement(const Operand& of, const ElementIndex& index, int rank)
      : operand(&of), offset(0) {
    for (int d = 0; d < rank; ++d) {
      offset += index[static_cast<size_t>(d)] * of.stride(d);
    }
  }

  void* address(int64_t axis_offset = 0) const {
    const auto size = static_cast<int64_t>(DataTypeSize(operand->type));
    return static_cast<char*>(operand->data) + (offset + axis_offset) * size;
  }
  ReferenceValue Load() const {
    const DataType type = operand->type;
    switch (operand->kind) {
      case Operand::Kind::kScalar:
        return primitives::ConstantOf(type, operand->scalar);
      case Operand::Kind::kIndex:
        return primitives::Converted(
            DataType::kInt64, ComputeType(type),
            {0, static_cast<int64_t>(operand->scalar) + offset});
      default:
        return primitives::ReadElement(type, address());
    }
  }
  ReferenceValue LoadFromAxis(primitives::WideInteger i) const {
    if (i < 0 || i >= operand->axis_size) return {};
    return primitives::ReadElement(
        operand->type, address(static_cast<int64_t>(i) * operand->axis_stride));
  }
};
using ReferenceElements = std::vector<ReferenceElement>;

// Evaluates an expression for one element of each input.
class ReferenceEvaluator {
 public:
  explicit ReferenceEvaluator(const Expression& expression)
      : expression_(expression), values_(expression.instructions().size()) {}

  void Run(const ReferenceElements& inputs) {
    for (size_t i = 0; i < values_.size(); ++i) {
      values_[i] = Compute(expression_.instructions()[i], inputs);
    }
  }
  // Returns the value of output `k`, of type ComputeType(its type).
  const ReferenceValue& output(size_t k) const {
    return value(expression_.outputs()[k].value);
  }
  void Store(size_t k, const ReferenceElement& to) const {
    const DataType type = to.operand->type;
    primitives::WriteElement(
        type,
        primitives::Converted(TypeOf(expression_.outputs()[k].value), type,
                              output(k)),
        to.address());
  }

 private:
  const ReferenceValue& value(int32_t id) const {
    return values_[static_cast<size_t>(id)];
  }
  DataType TypeOf(int32_t id) const {
    return ComputeType(
        expression_.instructions()[static_cast<size_t>(id)].type);
  }

  ReferenceValue Compute(const Instruction& in,
                         const ReferenceElements& inputs) const {
    switch (in.opcode) {
      case Opcode::kConstant:
        return primitives::ConstantOf(in.type, in.bits);
      case Opcode::kInput:
        return inputs[static_cast<size_t>(in.a)].Load();
      case Opcode::kElement:
        return inputs[static_cast<size_t>(in.a)].LoadFromAxis(
            value(in.b).integer);
      case Opcode::kSelect:
        return value(in.a).integer != 0 ? value(in.b) : value(in.c);
      case Opcode::kCast:
        return primitives::Converted(TypeOf(in.a), in.type, value(in.a));
      case Opcode::kBitcast: {
        char memory[sizeof(uint64_t)];
        primitives::WriteElement(TypeOf(in.a), value(in.a), memory);
        return primitives::ReadElement(in.type, memory);
      }
      default:
        return primitives::ComputeOpcode(
            in.opcode, TypeOf(in.a), value(in.a),
            in.b < 0 ? ReferenceValue() : value(in.b));
    }
  }

  const Expression& expression_;
  std::vector<ReferenceValue> values_;
};

// Returns the value of a reduction of no elements.
inline ReferenceValue ReferenceIdentity(ReduceKind kind, DataType type) {
  if (kind == ReduceKind::kSum) return {};
  if (kind == ReduceKind::kProduct) return {1, 1};
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const int bits = primitives::ReferenceBits(type);
  const primitives::WideInteger count =
      type == DataType::kBool ? 2 : primitives::WideInteger{1} << bits;
  const primitives::WideInteger lowest =
      primitives::ReferenceIsSigned(type) ? -count / 2 : 0;
  if (kind == ReduceKind::kMax) return {-kInfinity, lowest};
  return {kInfinity, lowest + count - 1};
}

// Returns the combination of two values. Sums and products of floats are not
// rounded.
inline ReferenceValue ReferenceCombine(ReduceKind kind, DataType type,
                                       const ReferenceValue& a,
                                       const ReferenceValue& b) {
  const bool is_bool = type == DataType::kBool;
  const Opcode opcode =
      kind == ReduceKind::kSum       ? is_bool ? Opcode::kMax : Opcode::kAdd
      : kind == ReduceKind::kProduct ? is_bool ? Opcode::kMin : Opcode::kMul
      : kind == ReduceKind::kMax     ? Opcode::kMax
                                     : Opcode::kMin;
  const DataType total = type == DataType::kFloat ? DataType::kDouble : type;
  return primitives::ComputeOpcode(opcode, total, a, b);
}

}  // namespace primitives_internal

// Run the primitives Map and Reduce, as defined in backend.h.
inline void ReferenceMap(const Expression& expression, Operands inputs,
                         Operands outputs) {
  using namespace primitives_internal;  // NOLINT
  ReferenceEvaluator evaluator(expression);
  ElementIndex index = {};
  ReferenceElements elements;
  const int rank = outputs[0].rank;
  ForEachIndex(outputs[0], 0, rank, index, [&] {
    elements.clear();
    for (const Operand& x : inputs) elements.emplace_back(x, index, rank);
    evaluator.Run(elements);
    for (size_t k = 0; k < outputs.size(); ++k) {
      evaluator.Store(k, ReferenceElement(outputs[k], index, rank));
    }
  });
}

inline void ReferenceReduce(const Reduction& reduction, Operands inputs,
                            Operands outputs) {
  using namespace primitives_internal;  // NOLINT
  const Operands map_inputs = inputs.first(reduction.map.inputs().size());
  const Operands finish_inputs = inputs.subspan(map_inputs.size());
  const DataType type = reduction.type();
  const int kept = outputs[0].rank;
  const int rank = inputs.empty() ? kept : inputs[0].rank;
  ReferenceEvaluator map(reduction.map), finish(reduction.finish);
  ElementIndex index = {};
  ReferenceElements elements;
  ForEachIndex(outputs[0], 0, kept, index, [&] {
    ReferenceValue total = ReferenceIdentity(reduction.kind, type);
    const auto add = [&] {
      elements.clear();
      for (const Operand& x : map_inputs) elements.emplace_back(x, index, rank);
      map.Run(elements);
      total = ReferenceCombine(reduction.kind, type, total, map.output(0));
    };
    if (rank == kept) {
      add();
    } else {
      ForEachIndex(inputs[0], kept, rank, index, add);
    }
    uint64_t bits;
    primitives::WriteElement(
        IsFloat(type) ? DataType::kDouble : DataType::kInt64, total, &bits);
    const Operand value = Operand::Scalar(type, bits);
    elements.clear();
    elements.emplace_back(value, index, 0);
    for (const Operand& x : finish_inputs) {
      elements.emplace_back(x, index, kept);
    }
    finish.Run(elements);
    for (size_t k = 0; k < outputs.size(); ++k) {
      finish.Store(k, ReferenceElement(outputs[k], index, kept));
    }
  });
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_REFERENCE_H_
