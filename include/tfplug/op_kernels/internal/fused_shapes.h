// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_FUSED_SHAPES_H_
#define TFPLUG_OP_KERNELS_INTERNAL_FUSED_SHAPES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "tfplug/base/shape.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/ir/view.h"
#include "tfplug/kernel/fused_map.h"
#include "tfplug/op_kernels/elementwise.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// How the shapes of a FusedMap's results follow from those of its inputs.
// Values that always have the same shape share a slot, so that a run infers
// each shape once.
class FusedShapes {
 public:
  FusedShapes() = default;
  explicit FusedShapes(const FusedMap& map) {
    num_inputs_ = num_slots_ = static_cast<int>(map.inputs.size());
    std::vector<int> slots;
    for (int i = 0; i < num_inputs_; ++i) slots.push_back(i);
    for (const FusedMap::Step& step : map.steps) {
      slots.push_back(SlotOf(step, slots));
    }
    for (int result : map.results) {
      outputs_.push_back(slots[static_cast<size_t>(result)]);
    }
  }

  size_t num_inputs() const { return static_cast<size_t>(num_inputs_); }

  // The shapes of one run.
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
    // INVALID_ARGUMENT if the inputs of a step do not fit together.
    absl::Status Infer() {
      for (const Rule& rule : rules_.rules_) {
        const Shape& a = *slots_[static_cast<size_t>(rule.a)];
        const Shape& b = *slots_[static_cast<size_t>(rule.b)];
        const Shape*& to = slots_[static_cast<size_t>(rule.to)];
        if (rule.kind != Rule::kBroadcast) {
          if (!Fits(rule, a, b)) return Unfit(rule, a, b);
          to = &a;
        } else if (b.rank() == 0 || a == b) {
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
    const Shape& output(size_t k) const {
      const int slot = rules_.outputs_[k];
      return slot < 0 ? scalar_ : *slots_[static_cast<size_t>(slot)];
    }

   private:
    const FusedShapes& rules_;
    absl::InlinedVector<const Shape*, 16> slots_;
    absl::InlinedVector<Shape, 8> inputs_;
    absl::InlinedVector<Shape, 4> made_;
    const Shape scalar_;
  };

 private:
  // Slot `to` gets the shape to which slots `a` and `b` broadcast, or that of
  // `a`, after a check of `b`.
  struct Rule {
    enum Kind { kBroadcast, kEqual, kEqualOrScalar, kBias } kind;
    int a, b, to;
  };
  static constexpr int kScalar = -1;  // the slot of constants

  int SlotOf(const FusedMap::Step& step, const std::vector<int>& slots) {
    if (step.args.empty()) return kScalar;
    Rule::Kind kind = Rule::kBroadcast;
    size_t first = 0;  // the argument with the shape of the result
    if (step.op == "BiasAdd") kind = Rule::kBias;
    if (step.op == "AddN") kind = Rule::kEqual;
    if (step.op == "Select") {
      kind = Rule::kEqualOrScalar;
      first = 1;
    }
    const ElementwiseOp* const op = FindElementwise(step.op);
    if (op != nullptr && op->shapes != Shapes::kBroadcast) {
      kind = op->shapes == Shapes::kEqualOrScalars ? Rule::kEqualOrScalar
                                                   : Rule::kEqual;
    }
    int slot = slots[static_cast<size_t>(step.args[first])];
    for (size_t k = 0; k < step.args.size(); ++k) {
      const int other = slots[static_cast<size_t>(step.args[k])];
      if (k != first) slot = Join(kind, slot, other);
    }
    return slot;
  }
  int Join(Rule::Kind kind, int a, int b) {
    if (b == kScalar || (a == b && kind != Rule::kBias)) return a;
    if (a == kScalar) return b;
    const bool is_check = kind != Rule::kBroadcast;
    for (const Rule& rule : rules_) {
      if (rule.kind == kind && rule.a == a && rule.b == b) return rule.to;
    }
    rules_.push_back({kind, a, b, is_check ? a : num_slots_++});
    return rules_.back().to;
  }

  static bool Fits(const Rule& rule, const Shape& a, const Shape& b) {
    if (rule.kind == Rule::kBias) {
      return a.rank() >= 2 && b.rank() == 1 && b.dim(0) == a.dim(a.rank() - 1);
    }
    return a == b || (rule.kind == Rule::kEqualOrScalar && b.rank() == 0);
  }
  [[gnu::cold, gnu::noinline]] static absl::Status Unfit(const Rule& rule,
                                                         const Shape& a,
                                                         const Shape& b) {
    return absl::InvalidArgumentError(
        (rule.kind == Rule::kBias
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
