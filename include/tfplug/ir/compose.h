// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_IR_COMPOSE_H_
#define TFPLUG_IR_COMPOSE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tfplug/ir/expression.h"
#include "tfplug/ir/value.h"

#pragma GCC visibility push(hidden)

// Expressions made of others. None of them may read an input at an index
// (Opcode::kElement).
namespace tfplug::ir {

// Returns which values are needed to compute the given ones, and includes
// these.
inline std::vector<bool> NeededFor(const Expression& expression,
                                   const std::vector<int32_t>& values) {
  std::vector<bool> needed(expression.instructions().size());
  for (int32_t value : values) needed[static_cast<size_t>(value)] = true;
  for (size_t i = needed.size(); i-- > 0;) {
    if (!needed[i]) continue;
    ForEachOperand(expression.instructions()[i],
                   [&](size_t value) { needed[value] = true; });
  }
  return needed;
}

inline std::vector<int32_t> OutputValues(const Expression& expression) {
  std::vector<int32_t> values;
  for (const Expression::Output& output : expression.outputs()) {
    values.push_back(output.value);
  }
  return values;
}

// Adds the instructions for `value` of an expression to a builder and returns
// the value there. Input i becomes input(i), of which the type is computed as
// that of the input.
template <class F>
Value Inline(const Expression& expression, int32_t value,
             ExpressionBuilder& builder, F input) {
  const std::vector<bool> needed = NeededFor(expression, {value});
  std::vector<Value> values;
  for (size_t i = 0; i < needed.size(); ++i) {
    Instruction in = expression.instructions()[i];
    if (!needed[i]) {
      values.emplace_back(&builder, -1);
    } else if (in.opcode == Opcode::kInput) {
      values.push_back(input(in.a));
    } else {
      int32_t* const operands[] = {&in.a, &in.b, &in.c};
      for (int k = 0; k < InfoOf(in.opcode).arity; ++k) {
        *operands[k] = values[static_cast<size_t>(*operands[k])].id();
      }
      values.push_back(builder.Add(in));
    }
  }
  return values[static_cast<size_t>(value)];
}

// An output of an expression, and the inputs that it needs.
struct OutputExpression {
  Expression expression;
  std::vector<int> inputs;
};
inline absl::StatusOr<OutputExpression> ExpressionOf(
    const Expression::Output& output, const Expression& expression) {
  OutputExpression one;
  ExpressionBuilder builder;
  const Value y = Inline(expression, output.value, builder, [&](int32_t i) {
    one.inputs.push_back(i);
    return builder.Input(expression.inputs()[static_cast<size_t>(i)]);
  });
  builder.Output(y, output.type);
  auto made = std::move(builder).Build();
  if (!made.ok()) return made.status();
  one.expression = *std::move(made);
  return one;
}

// Returns the expression with input i before the other ones. The instructions
// keep their places.
inline absl::StatusOr<Expression> WithInputFirst(const Expression& expression,
                                                 int32_t i) {
  std::vector<DataType> inputs = expression.inputs();
  std::rotate(inputs.begin(), inputs.begin() + i, inputs.begin() + i + 1);
  std::vector<Instruction> instructions = expression.instructions();
  for (Instruction& in : instructions) {
    if (in.opcode != Opcode::kInput) continue;
    in.a = in.a == i ? 0 : in.a < i ? in.a + 1 : in.a;
  }
  return Expression::Make(std::move(inputs), std::move(instructions),
                          expression.outputs());
}

}  // namespace tfplug::ir

#pragma GCC visibility pop

#endif  // TFPLUG_IR_COMPOSE_H_
