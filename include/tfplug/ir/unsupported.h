// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_IR_UNSUPPORTED_H_
#define TFPLUG_IR_UNSUPPORTED_H_

#include <cstddef>
#include <string>
#include <vector>

#include "tfplug/base/data_type.h"
#include "tfplug/ir/expression.h"
#include "tfplug/ir/opcodes.h"

#pragma GCC visibility push(hidden)

namespace tfplug::ir {

// Returns the first operation of an expression that supports(opcode, type) refuses,
// such as "erf of double", or nothing. `type` is the one that the operation computes
// in: that of the values it compares, and otherwise that of its result.
template <class Supports>
std::string FindUnsupported(const Expression& expression,
                            const Supports& supports) {
  const std::vector<Instruction>& all = expression.instructions();
  for (const Instruction& in : all) {
    const OpcodeInfo& info = InfoOf(in.opcode);
    const DataType type =
        info.gives_bool ? all[static_cast<size_t>(in.a)].type : in.type;
    if (!supports(in.opcode, type)) {
      return std::string(info.name) + " of " + DataTypeName(type);
    }
  }
  return "";
}

}  // namespace tfplug::ir

#pragma GCC visibility pop

#endif  // TFPLUG_IR_UNSUPPORTED_H_
