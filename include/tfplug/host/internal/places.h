// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_HOST_INTERNAL_PLACES_H_
#define TFPLUG_HOST_INTERNAL_PLACES_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "tfplug/host/internal/analysis.h"
#include "tfplug/ir/expression.h"

#pragma GCC visibility push(hidden)

namespace tfplug::host_internal {

// The place in which an evaluator finds or puts the value of an instruction.
struct HostPlace {
  // kSkipped: computed with a later instruction.
  enum Kind { kRegister, kFixed, kSingle, kMemory, kSkipped };
  Kind kind = kRegister;
  // The output that the value is computed in, or -1.
  int output = -1;
  // The instruction that is computed with this one, or -1.
  int comparison = -1;
  // The first instruction of the chain that ends with this one, or -1.
  int chain = -1;
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
  explicit HostPlaces(const Expression& expression)
      : expression_(expression),
        analysis_(expression.Analysis<HostAnalysis>()) {}

  const HostAnalysis& analysis() const { return analysis_; }

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
  // Returns whether the value is one of several outputs: a store of another one
  // may then precede the one that reads the input.
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

  // Finds chains of instructions that HostLoops::chain computes at once: each
  // has the one before it as an operand, and is its only use. Between them are
  // only values that are in no register, or in one of their own, so that all
  // operands still exist when the last one is computed. To be called when it is
  // known where constants and inputs are.
  void FindChains() {
    const auto& all = expression_.instructions();
    int32_t last = -1;  // of the chain so far
    int first = 0, length = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const Instruction& in = all[i];
      if (in.opcode == Opcode::kConstant) continue;
      if (in.opcode == Opcode::kInput) {
        if (places_[i].kind == HostPlace::kRegister) last = -1;
        continue;
      }
      const auto id = static_cast<int32_t>(i);
      if (!CanBeInChain(i)) {
        last = -1;
        continue;
      }
      const bool extends =
          last >= 0 && analysis_[static_cast<size_t>(last)].uses == 1 &&
          (in.a == last) != (in.b == last) && length < kMaxSteps;
      if (extends) {
        places_[static_cast<size_t>(last)].kind = HostPlace::kSkipped;
        places_[i].chain = first;
        ++length;
      } else {
        first = id;
        length = 1;
      }
      last = id;
    }
  }
  static constexpr int kMaxSteps = 16;

  // Returns whether all instructions that use value i can read it where it is
  // not dense: as one value, or else in rows.
  bool CanBeRows(size_t i, bool is_single) const {
    const auto& all = expression_.instructions();
    const size_t last_use = analysis_[i].last_use;
    if (last_use == all.size()) return false;  // an output
    const auto id = static_cast<int32_t>(i);
    for (size_t j = i + 1; j <= last_use; ++j) {
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
      const bool is_comparison = places_[j].kind == HostPlace::kSkipped &&
                                 is_single && in.type == DataType::kBool &&
                                 TypeOf(id) == DataType::kFloat;
      if (IsArithmetic(in.opcode) ? !IsFloat(in.type) : !is_comparison) {
        return false;
      }
    }
    return true;
  }

 private:
  // Returns whether the interpreter has loops for any strides, and chains, of
  // the operation.
  static bool IsArithmetic(Opcode opcode) {
    return opcode == Opcode::kAdd || opcode == Opcode::kSub ||
           opcode == Opcode::kMul || opcode == Opcode::kDiv ||
           opcode == Opcode::kMax || opcode == Opcode::kMin;
  }
  bool CanBeInChain(size_t i) const {
    const Instruction& in = expression_.instructions()[i];
    const HostPlace& place = places_[i];
    if (in.type != DataType::kFloat || place.kind != HostPlace::kRegister ||
        place.comparison >= 0) {
      return false;
    }
    const auto is_dense_or_single = [&](int32_t id) {
      const HostPlace& operand = places_[static_cast<size_t>(id)];
      return operand.is_dense ||
             (operand.row_stride == 0 && operand.stride == 0);
    };
    return IsArithmetic(in.opcode)
               ? is_dense_or_single(in.a) && is_dense_or_single(in.b)
               : in.opcode == Opcode::kNeg || in.opcode == Opcode::kAbs;
  }

  // If instruction i compares floats, lets the instruction after it compute it
  // as well: a selection, or a conversion to a number. Nothing is between them,
  // so the operands' registers still have their values.
  void SkipUsesOfComparison(size_t i) {
    const auto& all = expression_.instructions();
    const Instruction& in = all[i];
    const bool compares = in.opcode == Opcode::kLt ||
                          in.opcode == Opcode::kLe ||
                          in.opcode == Opcode::kEq || in.opcode == Opcode::kNe;
    if (!compares || !IsFloat(TypeOf(in.a)) || !analysis_.OnlyNextUses(i)) {
      return;
    }
    const auto comparison = static_cast<int>(i);
    size_t user = i + 1;
    if (all[user].a != comparison || all[user].type != TypeOf(in.a)) return;
    if (all[user].opcode == Opcode::kCast) {
      if (analysis_.OnlyNextUses(user) &&
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
  const HostAnalysis& analysis_;
  absl::InlinedVector<HostPlace, 12> places_;
};

}  // namespace tfplug::host_internal

#pragma GCC visibility pop

#endif  // TFPLUG_HOST_INTERNAL_PLACES_H_
