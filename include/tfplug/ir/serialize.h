// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_IR_SERIALIZE_H_
#define TFPLUG_IR_SERIALIZE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tfplug/ir/expression.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Return an expression as a text, such as a node's attribute, and the
// expression of such a text. a + b is
//
//   "float float;input:float 0;input:float 1;add:float 0 1;2:float"
//
// : the types of the inputs, the instructions, and the outputs.
std::string Serialize(const Expression& expression);
absl::StatusOr<Expression> ParseExpression(absl::string_view text);

namespace ir_internal {

inline DataType TypeFromName(absl::string_view name) {
  for (int i = 1; i < internal::kDataTypeCount; ++i) {
    if (internal::kDataTypes[i].name == name) return static_cast<DataType>(i);
  }
  return DataType(0);
}

// Reads "add:float 0 1" into an instruction.
inline bool ParseInstruction(absl::string_view text, Instruction* out) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  const std::pair<absl::string_view, absl::string_view> head =
      absl::StrSplit(words[0], absl::MaxSplits(':', 1));
  int opcode = 0;
  while (opcode < kOpcodeCount && head.first != ir::kOpcodes[opcode].name)
    ++opcode;
  if (opcode == kOpcodeCount) return false;
  out->opcode = static_cast<Opcode>(opcode);
  out->type = TypeFromName(head.second);
  if (out->opcode == Opcode::kConstant) {
    return words.size() == 2 && absl::SimpleAtoi(words[1], &out->bits);
  }
  int32_t* const operands[] = {&out->a, &out->b, &out->c};
  if (words.size() > 4) return false;
  for (size_t k = 1; k < words.size(); ++k) {
    if (!absl::SimpleAtoi(words[k], operands[k - 1])) return false;
  }
  return true;
}

}  // namespace ir_internal

inline std::string Serialize(const Expression& expression) {
  std::string text;
  for (DataType type : expression.inputs()) {
    text += (text.empty() ? "" : " ") + DataTypeName(type);
  }
  for (const Instruction& in : expression.instructions()) {
    text += std::string(";") + ir::InfoOf(in.opcode).name + ":" +
            DataTypeName(in.type);
    if (in.opcode == Opcode::kConstant) {
      text += " " + std::to_string(in.bits);
      continue;
    }
    for (int32_t value : {in.a, in.b, in.c}) {
      if (value >= 0) text += " " + std::to_string(value);
    }
  }
  // Outputs are the only parts that begin with a digit.
  for (const Expression::Output& output : expression.outputs()) {
    text +=
        ";" + std::to_string(output.value) + ":" + DataTypeName(output.type);
  }
  return text;
}

inline absl::StatusOr<Expression> ParseExpression(absl::string_view text) {
  const auto wrong = [](absl::string_view part) {
    return absl::InvalidArgumentError("\"" + std::string(part) +
                                      "\" is no part of an expression");
  };
  std::vector<DataType> inputs;
  std::vector<Instruction> instructions;
  std::vector<Expression::Output> outputs;
  bool is_first = true;
  for (absl::string_view part : absl::StrSplit(text, ';')) {
    if (std::exchange(is_first, false)) {
      for (absl::string_view name :
           absl::StrSplit(part, ' ', absl::SkipEmpty())) {
        inputs.push_back(ir_internal::TypeFromName(name));
        if (inputs.back() == DataType(0)) return wrong(part);
      }
      continue;
    }
    if (part.empty()) return wrong(part);
    if (part[0] >= '0' && part[0] <= '9') {
      const std::pair<absl::string_view, absl::string_view> output =
          absl::StrSplit(part, absl::MaxSplits(':', 1));
      outputs.emplace_back();
      outputs.back().type = ir_internal::TypeFromName(output.second);
      if (!absl::SimpleAtoi(output.first, &outputs.back().value)) {
        return wrong(part);
      }
      continue;
    }
    instructions.emplace_back();
    if (!ir_internal::ParseInstruction(part, &instructions.back())) {
      return wrong(part);
    }
  }
  return Expression::Make(std::move(inputs), std::move(instructions),
                          std::move(outputs));
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_IR_SERIALIZE_H_
