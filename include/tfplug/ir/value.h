// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_IR_VALUE_H_
#define TFPLUG_IR_VALUE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/ir/expression.h"

#pragma GCC visibility push(hidden)

// Builds expressions with C++ operators:
//
//   MakeExpression({kFloat, kFloat}, kFloat,
//                  [](Value x, Value y) { return Max(x * y + 1, 0); })
//
// Operators take values of one type, or a value and a number, which becomes a
// constant of the value's type.
namespace tfplug {

class Value;

// Collects the instructions of an expression. Equal instructions are one.
class ExpressionBuilder {
 public:
  ExpressionBuilder() = default;
  ExpressionBuilder(const ExpressionBuilder&) = delete;
  ExpressionBuilder& operator=(const ExpressionBuilder&) = delete;

  // Adds an input and returns its element.
  Value Input(DataType type);
  // Adds an input that is only read with an index. Returns its number.
  int AxisInput(DataType type) {
    inputs_.push_back(type);
    return static_cast<int>(inputs_.size()) - 1;
  }
  // Returns element `index` of the axis of input `input` (see
  // Operand::axis_size), 0 if it is out of range.
  Value Element(int input, Value index);
  Value Constant(DataType type, double real);
  Value Constant(DataType type, int64_t integer);
  void Output(Value value, DataType type);

  // Returns INVALID_ARGUMENT if an operator was applied to types that it does
  // not support.
  absl::StatusOr<Expression> Build() && {
    return Expression::Make(std::move(inputs_), std::move(instructions_),
                            std::move(outputs_));
  }

  Value Add(const Instruction& instruction);
  const Instruction& instruction(int32_t id) const {
    return instructions_[static_cast<size_t>(id)];
  }

 private:
  std::vector<DataType> inputs_;
  std::vector<Instruction> instructions_;
  std::vector<Expression::Output> outputs_;
};

// A value of the expression that a builder builds.
class Value {
 public:
  Value(ExpressionBuilder* builder, int32_t id) : builder_(builder), id_(id) {}

  ExpressionBuilder* builder() const { return builder_; }
  int32_t id() const { return id_; }
  // Returns the type in which the value is computed.
  DataType type() const { return ComputeType(builder_->instruction(id_).type); }
  // Returns the type of the value in memory, if it is an input: narrower than
  // type() for numbers of 8 and 16 bits.
  DataType stored_type() const { return builder_->instruction(id_).type; }

  // Returns a constant of this value's type.
  Value Like(double number) const { return builder_->Constant(type(), number); }
  Value Like(int64_t number) const {
    return builder_->Constant(type(), number);
  }
  Value Like(int number) const { return Like(int64_t{number}); }
  Value Like(Value value) const { return value; }

  Value Unary(Opcode opcode) const;
  Value Binary(Opcode opcode, Value other) const;

 private:
  ExpressionBuilder* builder_;
  int32_t id_;
};

inline Value ExpressionBuilder::Add(const Instruction& instruction) {
  size_t id = 0;
  while (id < instructions_.size() && !(instructions_[id] == instruction)) ++id;
  if (id == instructions_.size()) instructions_.push_back(instruction);
  return Value(this, static_cast<int32_t>(id));
}

inline Value ExpressionBuilder::Input(DataType type) {
  const int input = AxisInput(type);
  return Add({Opcode::kInput, type, input, -1, -1, 0});
}
inline Value ExpressionBuilder::Element(int input, Value index) {
  const DataType type = inputs_[static_cast<size_t>(input)];
  return Add({Opcode::kElement, type, input, index.id(), -1, 0});
}
inline Value ExpressionBuilder::Constant(DataType type, double real) {
  // A double that is no integer of the type is not converted.
  const bool fits = real >= -9e18 && real <= 9e18;
  return Add({Opcode::kConstant, type, -1, -1, -1,
              ConstantBits(type, real, fits ? static_cast<int64_t>(real) : 0)});
}
inline Value ExpressionBuilder::Constant(DataType type, int64_t integer) {
  return Add({Opcode::kConstant, type, -1, -1, -1,
              ConstantBits(type, static_cast<double>(integer), integer)});
}
inline void ExpressionBuilder::Output(Value value, DataType type) {
  outputs_.push_back({value.id(), type});
}

inline Value Value::Unary(Opcode opcode) const {
  const bool gives_bool = ir::InfoOf(opcode).gives_bool;
  return builder_->Add(
      {opcode, gives_bool ? DataType::kBool : type(), id_, -1, -1, 0});
}
inline Value Value::Binary(Opcode opcode, Value other) const {
  const bool gives_bool = ir::InfoOf(opcode).gives_bool;
  return builder_->Add(
      {opcode, gives_bool ? DataType::kBool : type(), id_, other.id_, -1, 0});
}

namespace ir_internal {
template <class T>
using IfNumber = std::enable_if_t<std::is_arithmetic_v<T>>;
}  // namespace ir_internal

// Define a function of a value x, or of two values a and b, of which one may be
// a number.
#define TFPLUG_INTERNAL_BUILD_1(name, result) \
  inline Value name(Value x) { return result; }
#define TFPLUG_INTERNAL_BUILD_2(name, result)                    \
  inline Value name(Value a, Value b) { return result; }         \
  template <class Number, class = ir_internal::IfNumber<Number>> \
  Value name(Value a, Number b) {                                \
    return name(a, a.Like(b));                                   \
  }                                                              \
  template <class Number, class = ir_internal::IfNumber<Number>> \
  Value name(Number a, Value b) {                                \
    return name(b.Like(a), b);                                   \
  }
#define TFPLUG_INTERNAL_OPERANDS_1(opcode) x.Unary(opcode)
#define TFPLUG_INTERNAL_OPERANDS_2(opcode) a.Binary(opcode, b)
#define TFPLUG_INTERNAL_OPCODE(name, text, function, arity, ...) \
  TFPLUG_INTERNAL_BUILD_##arity(                                 \
      function, TFPLUG_INTERNAL_OPERANDS_##arity(Opcode::k##name))
#include "tfplug/ir/opcodes.def"
TFPLUG_INTERNAL_BUILD_1(operator!, ~x)
TFPLUG_INTERNAL_BUILD_2(operator>, b < a)
TFPLUG_INTERNAL_BUILD_2(operator>=, b <= a)
#undef TFPLUG_INTERNAL_BUILD_1
#undef TFPLUG_INTERNAL_BUILD_2
#undef TFPLUG_INTERNAL_OPERANDS_1
#undef TFPLUG_INTERNAL_OPERANDS_2

// Converts to `type`. A type of 8 or 16 bits rounds or wraps; the result is
// computed in its ComputeType.
inline Value Cast(Value x, DataType type) {
  if (type == x.type()) return x;
  return x.builder()->Add({Opcode::kCast, type, x.id(), -1, -1, 0});
}
inline Value Bitcast(Value x, DataType type) {
  return x.builder()->Add({Opcode::kBitcast, type, x.id(), -1, -1, 0});
}

// Returns `a` where `condition` is true, and `b` elsewhere. One of them may be
// a number.
inline Value Select(Value condition, Value a, Value b) {
  return condition.builder()->Add(
      {Opcode::kSelect, a.type(), condition.id(), a.id(), b.id(), 0});
}
template <class Number, class = ir_internal::IfNumber<Number>>
Value Select(Value condition, Value a, Number b) {
  return Select(condition, a, a.Like(b));
}
template <class Number, class = ir_internal::IfNumber<Number>>
Value Select(Value condition, Number a, Value b) {
  return Select(condition, b.Like(a), b);
}

inline Value Square(Value x) { return x * x; }
inline Value Reciprocal(Value x) { return 1 / x; }
inline Value Sigmoid(Value x) {
  const Value e = Exp(-Abs(x));
  return Select(x < 0, e, 1) / (1 + e);
}
inline Value Infinity(Value like) {
  return like.Like(std::numeric_limits<double>::infinity());
}

namespace ir_internal {
template <class F, size_t... i>
absl::StatusOr<Expression> BuildExpression(const DataType* inputs,
                                           std::initializer_list<DataType> out,
                                           F f, std::index_sequence<i...>) {
  ExpressionBuilder builder;
  // Braces fix the order of the inputs.
  const std::array<Value, sizeof...(i)> values{builder.Input(inputs[i])...};
  const auto result = f(values[i]...);
  if constexpr (std::is_same_v<decltype(result), const Value>) {
    builder.Output(result, *out.begin());
  } else {
    size_t k = 0;
    for (DataType type : out) builder.Output(result[k++], type);
  }
  return std::move(builder).Build();
}
}  // namespace ir_internal

// Returns the expression of f(inputs...), which returns a Value, or an array of
// one Value for each of `outputs`.
template <size_t kInputs, class F>
absl::StatusOr<Expression> MakeExpression(
    const DataType (&inputs)[kInputs], std::initializer_list<DataType> outputs,
    F f) {
  return ir_internal::BuildExpression(inputs, outputs, f,
                                      std::make_index_sequence<kInputs>());
}

// Returns the expression that converts `from` to `to`, or copies. Storing the
// output rounds or wraps.
inline absl::StatusOr<Expression> CastExpression(DataType from, DataType to) {
  return MakeExpression({from}, {to},
                        [&](Value x) { return Cast(x, ComputeType(to)); });
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_IR_VALUE_H_
