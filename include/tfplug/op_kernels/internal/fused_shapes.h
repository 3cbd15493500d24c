// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_FUSED_SHAPES_H_
#define TFPLUG_OP_KERNELS_INTERNAL_FUSED_SHAPES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "tfplug/base/shape.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/ir/compose.h"
#include "tfplug/ir/view.h"
#include "tfplug/kernel/fused_map_ops.h"
#include "tfplug/op_kernels/elementwise.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// Infers the shapes of an expression's outputs from those of its inputs: each
// output has the shape to which the inputs broadcast on which it depends. Values
// that depend on the same inputs share a slot, so that a run infers each shape
// once.
class FusedShapes {
 public:
  struct Check {
    ShapeCheck kind;
    int32_t a, b;  // values
  };

  FusedShapes() = default;
  FusedShapes(const Expression& expression, const std::vector<Check>& checks)
      : num_inputs_(static_cast<int>(expression.inputs().size())),
        num_slots_(num_inputs_) {
    std::vector<int32_t> wanted = ir::OutputValues(expression);
    for (const Check& check : checks) {
      wanted.insert(wanted.end(), {check.a, check.b});
    }
    const std::vector<bool> needed = ir::NeededFor(expression, wanted);
    std::vector<Inputs> inputs_of(needed.size(), Inputs(num_inputs()));
    SlotsOfInputs slots = {{Inputs(num_inputs()), kScalar}};
    for (size_t i = 0; i < needed.size(); ++i) {
      if (!needed[i]) continue;
      const Instruction& in = expression.instructions()[i];
      if (in.opcode == Opcode::kInput) {
        inputs_of[i][static_cast<size_t>(in.a)] = true;
        slots[inputs_of[i]] = in.a;
      }
      ir::ForEachOperand(in, [&](size_t value) {
        Join(inputs_of[value], inputs_of[i], slots);
      });
      for (const Check& check : checks) {
        if (static_cast<size_t>(std::max(check.a, check.b)) == i) {
          AddCheck(check, inputs_of, slots);
        }
      }
    }
    for (int32_t value : ir::OutputValues(expression)) {
      outputs_.push_back(slots[inputs_of[static_cast<size_t>(value)]]);
    }
  }

  size_t num_inputs() const { return static_cast<size_t>(num_inputs_); }

  // Holds the shapes of one run.
  class Run {
   public:
    explicit Run(const FusedShapes& rules)
        : rules_(rules),
          slots_(static_cast<size_t>(rules.num_slots_), nullptr),
          inputs_(static_cast<size_t>(rules.num_inputs_)) {
      made_.reserve(rules.rules_.size());  // slots_ points to its elements
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    void SetInput(size_t i, const Operand& view) {
      inputs_[i] = Shape(absl::MakeConstSpan(view.dims.data(),
                                             static_cast<size_t>(view.rank)));
      slots_[i] = &inputs_[i];
    }
    // INVALID_ARGUMENT if the inputs of an op do not fit together.
    absl::Status Infer() {
      for (const Rule& rule : rules_.rules_) {
        const Shape &a = At(rule.a), &b = At(rule.b);
        if (rule.is_check) {
          if (!Fits(rule.check, a, b)) return Unfit(rule.check, a, b);
          continue;
        }
        const Shape*& to = slots_[static_cast<size_t>(rule.to)];
        if (b.rank() == 0 || a == b) {
          to = &a;
        } else if (a.rank() == 0) {
          to = &b;
        } else {
          made_.push_back(a);
          TFPLUG_RETURN_IF_ERROR(BroadcastShape(b, &made_.back()));
          to = &made_.back();
        }
      }
      return absl::OkStatus();
    }
    const Shape& output(size_t k) const { return At(rules_.outputs_[k]); }

   private:
    const Shape& At(int slot) const {
      return slot == kScalar ? scalar_ : *slots_[static_cast<size_t>(slot)];
    }

    const FusedShapes& rules_;
    absl::InlinedVector<const Shape*, 16> slots_;
    absl::InlinedVector<Shape, 8> inputs_;
    absl::InlinedVector<Shape, 4> made_;
    const Shape scalar_;
  };

 private:
  // A step gives slot `to` the shape to which slots `a` and `b` broadcast, or
  // checks their shapes.
  struct Rule {
    bool is_check;
    ShapeCheck check;
    int a, b, to;
  };
  static constexpr int kScalar = -1;  // the slot of constants
  using Inputs = std::vector<bool>;   // on which a value depends
  using SlotsOfInputs = std::map<Inputs, int>;

  // Adds `more` inputs to those of a value.
  void Join(const Inputs& more, Inputs& inputs, SlotsOfInputs& slots) {
    const int a = slots[inputs], b = slots[more];
    Unite(more, inputs);
    if (slots.count(inputs) > 0) return;
    rules_.push_back({false, ShapeCheck::kEqual, a, b, num_slots_});
    slots[inputs] = num_slots_++;
  }
  void AddCheck(const Check& check, const std::vector<Inputs>& inputs_of,
                SlotsOfInputs& slots) {
    Inputs both = inputs_of[static_cast<size_t>(check.a)];
    const Inputs& second = inputs_of[static_cast<size_t>(check.b)];
    const int a = slots[both], b = slots[second];
    if (a == b && check.kind != ShapeCheck::kBias) return;
    rules_.push_back({true, check.kind, a, b, a});
    Unite(second, both);
    slots.emplace(std::move(both), a);  // the second shape changes nothing
  }
  static void Unite(const Inputs& more, Inputs& inputs) {
    for (size_t i = 0; i < more.size(); ++i) {
      if (more[i]) inputs[i] = true;
    }
  }

  static bool Fits(ShapeCheck check, const Shape& a, const Shape& b) {
    if (check == ShapeCheck::kBias) {
      return a.rank() >= 2 && b.rank() == 1 && b.dim(0) == a.dim(a.rank() - 1);
    }
    return a == b || (check == ShapeCheck::kEqualOrScalar && b.rank() == 0);
  }
  [[gnu::cold, gnu::noinline]] static absl::Status Unfit(ShapeCheck check,
                                                         const Shape& a,
                                                         const Shape& b) {
    return absl::InvalidArgumentError(
        (check == ShapeCheck::kBias
             ? "Must provide as many biases as the last dimension of the input "
               "tensor: "
             : "all inputs must have the same shape: ") +
        b.ToString() + " vs. " + a.ToString());
  }

  int num_inputs_ = 0, num_slots_ = 0;
  std::vector<Rule> rules_;
  std::vector<int> outputs_;  // slots
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_FUSED_SHAPES_H_
