// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_HOST_INTERNAL_ANALYSIS_H_
#define TFPLUG_HOST_INTERNAL_ANALYSIS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tfplug/ir/expression.h"

#pragma GCC visibility push(hidden)

namespace tfplug::host_internal {

// Describes how the instructions of an expression use its values, and gives
// each value a register. Made once for an expression (Expression::Analysis).
class HostAnalysis {
 public:
  struct Value {
    // Values that are not needed at the same time share a register, except that
    // a constant, which is computed once for all tiles, keeps its own.
    int register_index = 0;
    // The number of instructions and outputs that use the value.
    int uses = 0;
    // The last instruction that uses the value: the value itself if there is
    // none, the number of instructions for an output.
    size_t last_use = 0;
  };

  explicit HostAnalysis(const Expression& expression)
      : all_(expression.instructions()), values_(all_.size()) {
    FindUses(expression);
    AssignRegisters();
  }

  const Value& operator[](size_t i) const { return values_[i]; }
  int num_registers() const { return num_registers_; }
  // Returns the size of the largest type that is computed in, in bytes.
  size_t widest_value() const { return widest_value_; }
  // Returns whether the next instruction, and nothing else, uses a value, so
  // that both can be computed at once.
  bool OnlyNextUses(size_t i) const {
    return i + 1 < values_.size() && values_[i].last_use == i + 1;
  }

 private:
  void FindUses(const Expression& expression) {
    for (size_t i = 0; i < all_.size(); ++i) {
      widest_value_ =
          std::max(widest_value_, DataTypeSize(ComputeType(all_[i].type)));
      values_[i].last_use = i;
      ir::ForEachOperand(all_[i], [&](size_t id) {
        values_[id].last_use = i;
        ++values_[id].uses;
      });
    }
    for (const Expression::Output& output : expression.outputs()) {
      Value& value = values_[static_cast<size_t>(output.value)];
      value.last_use = all_.size();
      ++value.uses;
    }
  }

  void AssignRegisters() {
    std::vector<int> unused;
    for (size_t i = 0; i < all_.size(); ++i) {
      if (unused.empty() || IsConstant(i)) {
        values_[i].register_index = num_registers_++;
      } else {
        values_[i].register_index = unused.back();
        unused.pop_back();
      }
      const auto release = [&](size_t id) {
        if (values_[id].last_use == i && !IsConstant(id)) {
          unused.push_back(values_[id].register_index);
        }
      };
      ir::ForEachOperand(all_[i], release);
      release(i);
    }
  }
  bool IsConstant(size_t i) const {
    return all_[i].opcode == Opcode::kConstant;
  }

  const std::vector<Instruction>& all_;
  std::vector<Value> values_;
  int num_registers_ = 0;
  size_t widest_value_ = 0;
};

}  // namespace tfplug::host_internal

#pragma GCC visibility pop

#endif  // TFPLUG_HOST_INTERNAL_ANALYSIS_H_
