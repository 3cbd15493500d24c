// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_INTERNAL_HOST_PLACES_H_
#define TFPLUG_BACKEND_INTERNAL_HOST_PLACES_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "tfplug/backend/expression.h"

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// Where an evaluator finds or puts the value of an instruction.
struct HostPlace {
  // kSkipped: computed with a later instruction.
  enum Kind { kRegister, kFixed, kSingle, kMemory, kSkipped };
  Kind kind = kRegister;
  // The output that the value is computed in, or -1.
  int output = -1;
  // The instruction that is computed with this one, or -1.
  int comparison = -1;
  // False if `row_stride` and `stride` say where elements are: those of
  // memory, or 0 for kSingle.
  bool is_dense = true;
  void* data = nullptr;
  int64_t row_stride = 0, stride = 0;
  uint64_t single = 0;  // its first bytes are the value
};
// The places of an expression's values, and the decisions that depend on how
// the values are used.
class HostPlaces {
 public:
  explicit HostPlaces(const Expression& expression) : expression_(expression) {}

  void Start() {
    places_.assign(expression_.instructions().size(), HostPlace());
    for (size_t i = 0; i < places_.size(); ++i) SkipUsesOfComparison(i);
  }

  HostPlace& operator[](size_t i) { return places_[i]; }
  const HostPlace& operator[](size_t i) const { return places_[i]; }
  const HostPlace* begin() const { return places_.data(); }
  const HostPlace* end() const { return begin() + places_.size(); }

  DataType TypeOf(int32_t id) const {
    return ComputeType(
        expression_.instructions()[static_cast<size_t>(id)].type);
  }
  // With several outputs, a store may precede the one that reads the input.
  bool IsOneOfOutputs(size_t id) const {
    const auto& outputs = expression_.outputs();
    if (outputs.size() == 1) return false;
    for (const auto& output : outputs) {
      if (static_cast<size_t>(output.value) == id) return true;
    }
    return false;
  }

  bool IsDense(int32_t id) const {
    return places_[static_cast<size_t>(id)].is_dense;
  }

  // Returns whether all instructions that use value i can read it where it is
  // not dense: as one value, or else in rows.
  bool CanBeRows(size_t i, bool is_single) const {
    const auto& all = expression_.instructions();
    for (const auto& output : expression_.outputs()) {
      if (static_cast<size_t>(output.value) == i) return false;
    }
    const auto id = static_cast<int32_t>(i);
    for (size_t j = i + 1; j < all.size(); ++j) {
      const Instruction& in = all[j];
      if (in.opcode == Opcode::kInput) continue;
      const bool is_element = in.opcode == Opcode::kElement;
      const bool is_a = in.a == id && !is_element;
      if (!is_a && in.b != id && in.c != id) continue;
      const int32_t other = is_a ? in.b : in.a;
      if (is_element || in.c >= 0 || other < 0 || other == id ||
          !IsDense(other) || places_[j].comparison >= 0) {
        return false;
      }
      switch (in.opcode) {
        case Opcode::kAdd:
        case Opcode::kSub:
        case Opcode::kMul:
        case Opcode::kDiv:
        case Opcode::kMax:
        case Opcode::kMin:
          if (!IsFloat(in.type)) return false;
          break;
        default:  // a comparison
          if (places_[j].kind != HostPlace::kSkipped || !is_single ||
              in.type != DataType::kBool || TypeOf(id) != DataType::kFloat) {
            return false;
          }
      }
    }
    return true;
  }

 private:
  // If instruction i compares floats, lets the instruction after it compute it
  // as well: a selection, or a conversion to a number. Nothing is between them,
  // so the operands' registers still have their values.
  void SkipUsesOfComparison(size_t i) {
    const auto& all = expression_.instructions();
    const Instruction& in = all[i];
    const bool compares = in.opcode == Opcode::kLt ||
                          in.opcode == Opcode::kLe ||
                          in.opcode == Opcode::kEq || in.opcode == Opcode::kNe;
    if (!compares || !IsFloat(TypeOf(in.a)) || !expression_.only_next_uses(i)) {
      return;
    }
    const auto comparison = static_cast<int>(i);
    size_t user = i + 1;
    if (all[user].a != comparison || all[user].type != TypeOf(in.a)) return;
    if (all[user].opcode == Opcode::kCast) {
      if (expression_.only_next_uses(user) &&
          all[user + 1].opcode == Opcode::kMul &&
          all[user + 1].a != all[user + 1].b) {
        places_[user++].kind = HostPlace::kSkipped;
      }
    } else if (all[user].opcode != Opcode::kSelect) {
      return;
    }
    places_[i].kind = HostPlace::kSkipped;
    places_[user].comparison = comparison;
  }

  const Expression& expression_;
  absl::InlinedVector<HostPlace, 12> places_;
};

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_INTERNAL_HOST_PLACES_H_
