// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_VARIANT_BUILDER_H_
#define TFPLUG_PATTERNS_INTERNAL_VARIANT_BUILDER_H_

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/patterns/internal/element.h"
#include "tfplug/patterns/internal/variant.h"

#pragma GCC visibility push(hidden)

namespace tfplug::patterns_internal {

// Finds all variants of a pattern, in the order in which they are tried.
class VariantBuilder {
 public:
  // `results` are further outputs that the rule replaces: of nodes of the
  // pattern, or of nodes that share an operand with it, which then belong to
  // the pattern. INVALID_ARGUMENT for a malformed pattern; the caller adds the
  // rule's name.
  static absl::Status Build(const PatternOutput& root,
                            const std::vector<PatternOutput>& results,
                            std::vector<PatternVariant>& variants) {
    VariantBuilder builder(variants, &results);
    builder.root_ = root.element.get();
    builder.Expand({}, {{root}});
    return builder.status_;
  }

 private:
  using Kind = PatternElement::Kind;
  using StepKind = PatternStep::Kind;

  // A limit on the time for matching, above the needs of realistic patterns.
  static constexpr size_t kMaxVariants = 256;

  // An output of the pattern that needs a slot, and where it is.
  struct Pending {
    PatternOutput output;
    StepKind kind = StepKind::kInput;
    int parent = -1;  // -1: the root, or a result that is not reached yet.
    int input = 0;
    bool from_end = false;
    int after = 0;  // For an Each.
    int swap = -1;
  };

  VariantBuilder(std::vector<PatternVariant>& variants,
                 const std::vector<PatternOutput>* results)
      : variants_(variants), results_(results) {}

  void Expand(PatternVariant variant, std::deque<Pending> pending) {
    while (status_.ok()) {
      if (pending.empty() && !AddResult(variant, pending)) break;
      if (!status_.ok()) return;
      Pending next = std::move(pending.front());
      pending.pop_front();
      next.output = variant.Resolve(next.output);
      const PatternElement* element = next.output.element.get();
      const int known = variant.SlotOf(element);
      if (known >= 0) {
        if (element->kind == Kind::kRepeated) {
          return Fail("a Repeated(...) can be an input only once");
        }
        if (next.parent >= 0) AddStep(variant, next, known, /*is_new=*/false);
        continue;
      }
      if (element->is_choice()) return Decide(variant, pending, next);
      const int slot = static_cast<int>(variant.slots.size());
      if (slot == 0) {
        if (!element->is_node() && !is_body_) {
          return Fail(
              "the root of a pattern must be a node; use Match<...>(...)");
        }
        variant.root_port = next.output.port;
      } else if (next.parent < 0) {
        if (Connect(std::move(variant), std::move(pending), next)) return;
        return Fail(
            "a node in AlsoReplace() must be a part of the pattern, or have an "
            "input that is");
      } else {
        AddStep(variant, next, slot, /*is_new=*/true);
      }
      AddSlot(variant, element);
      if (element->kind == Kind::kRepeated) {
        const PatternElement& body = *element->inputs[0].element;
        if (is_body_) return Fail(kNested);
        if (body.inputs.empty()) {
          return Fail(
              "a Repeated node must have inputs: the chain continues "
              "in the first one");
        }
        pending.push_front(
            {body.inputs[0], StepKind::kSame, slot, 0, false, 0, -1});
      } else if (element->has_inputs) {
        return ExpandInputs(std::move(variant), std::move(pending), slot);
      }
    }
    if (status_.ok()) Finish(std::move(variant));
  }

  // Continues with the inputs of the node in `slot`. A commutative root gets a
  // variant for each order, because PatternTable sorts out variants by the ops
  // of the root's inputs.
  void ExpandInputs(PatternVariant variant, std::deque<Pending> pending,
                    int slot) {
    const PatternElement& element = *variant.slots[static_cast<size_t>(slot)];
    const bool is_commutative =
        element.is_commutative && element.inputs.size() >= 2;
    if (is_commutative && slot == 0 && !is_body_) {
      std::deque<Pending> in_order = pending;
      Append(in_order, variant, slot, /*swap=*/false);
      Expand(variant, std::move(in_order));
      Append(pending, variant, slot, /*swap=*/true);
    } else {
      Append(pending, variant, slot, /*swap=*/false,
             is_commutative ? variant.num_swaps++ : -1);
    }
    Expand(std::move(variant), std::move(pending));
  }
  // `swaps`: PatternStep::swap of the first two inputs.
  void Append(std::deque<Pending>& pending, const PatternVariant& variant,
              int slot, bool swap, int swaps = -1) {
    const PatternElement& element = *variant.slots[static_cast<size_t>(slot)];
    const int size = static_cast<int>(element.inputs.size());
    bool after_each = false;
    for (int i = 0; i < size; ++i) {
      const int from = swap && i < 2 ? 1 - i : i;
      const PatternOutput& input = element.inputs[static_cast<size_t>(from)];
      if (is_chain_ && slot == 0 && from == 0) {
        continue;  // The matcher follows the chain.
      } else if (input.element->kind == Kind::kEach) {
        after_each = true;
        pending.push_back(
            {input, StepKind::kEach, slot, i, false, size - 1 - i, -1});
      } else {
        pending.push_back({input, StepKind::kInput, slot,
                           after_each ? size - i : i, after_each, 0,
                           i < 2 ? swaps : -1});
      }
    }
  }

  void AddSlot(PatternVariant& variant, const PatternElement* element) {
    variant.slots.push_back(element);
    variant.num_nodes += element->is_node() ? 1 : 0;
  }
  void AddStep(PatternVariant& variant, const Pending& next, int slot,
               bool is_new) {
    const Kind kind = next.output.element->kind;
    PatternStep step = {};
    step.kind = kind == Kind::kRepeated ? StepKind::kRepeated : next.kind;
    step.slot = slot;
    step.parent = next.parent;
    step.input = next.input;
    step.port = next.output.port;
    step.is_new = is_new;
    step.from_end = next.from_end;
    step.after = next.after;
    step.swap = next.swap;
    step.starts_swap = next.swap >= 0;
    for (const PatternStep& other : variant.steps) {
      step.starts_swap = step.starts_swap && other.swap != next.swap;
    }
    if (kind == Kind::kEach && is_body_) status_ = Malformed(kNested);
    variant.steps.push_back(std::move(step));
  }

  // Continues with the next result that has no slot. Returns false if there is
  // none.
  bool AddResult(const PatternVariant& variant, std::deque<Pending>& pending) {
    if (results_ == nullptr) return false;
    for (const PatternOutput& result : *results_) {
      const PatternOutput output = variant.Resolve(result);
      if (variant.SlotOf(output.element.get()) >= 0 ||
          Contains(root_, output.element.get())) {
        continue;
      }
      if (!output.element->is_node() && !output.element->is_choice()) {
        status_ = Malformed("AlsoReplace() takes an output of a node");
        return false;
      }
      pending.push_back({output});
      return true;
    }
    return false;
  }
  // Returns whether the element is a part of the pattern of the root, in some
  // variant.
  static bool Contains(const PatternElement* root,
                       const PatternElement* element) {
    if (root == element) return true;
    for (const PatternOutput& input : root->inputs) {
      if (Contains(input.element.get(), element)) return true;
    }
    return false;
  }

  // Reaches the node of `next` as a user of a value that has a slot. Returns
  // false if there is none.
  bool Connect(PatternVariant variant, std::deque<Pending> pending,
               const Pending& next) {
    const PatternElement* element = next.output.element.get();
    const int size = static_cast<int>(element->inputs.size());
    for (int i = 0; i < size; ++i) {
      const PatternOutput input =
          variant.Resolve(element->inputs[static_cast<size_t>(i)]);
      const int from = variant.SlotOf(input.element.get());
      if (from < 0) continue;
      const bool swaps = element->is_commutative && size >= 2 && i < 2;
      for (int swap = 0; swap < (swaps ? 2 : 1); ++swap) {
        PatternVariant connected = variant;
        std::deque<Pending> rest = pending;
        const int slot = static_cast<int>(variant.slots.size());
        PatternStep step = {};
        step.kind = StepKind::kUse;
        step.slot = slot;
        step.parent = from;
        step.input = swap == 1 ? 1 - i : i;
        step.port = input.port;
        step.is_new = true;
        connected.steps.push_back(std::move(step));
        AddSlot(connected, element);
        Append(rest, connected, slot, swap == 1);
        Expand(std::move(connected), std::move(rest));
      }
      return true;
    }
    // Reach an input first.
    for (const PatternOutput& input : element->inputs) {
      if (!input.element->is_node() || input.element->inputs.empty()) continue;
      if (!Reaches(variant, *input.element)) continue;
      pending.push_front(next);
      return Connect(std::move(variant), std::move(pending), {input});
    }
    return false;
  }
  static bool Reaches(const PatternVariant& variant,
                      const PatternElement& element) {
    for (const PatternOutput& input : element.inputs) {
      const PatternOutput output = variant.Resolve(input);
      if (variant.SlotOf(output.element.get()) >= 0 ||
          (output.element->is_node() && Reaches(variant, *output.element))) {
        return true;
      }
    }
    return false;
  }

  void Decide(const PatternVariant& variant, const std::deque<Pending>& pending,
              const Pending& next) {
    const PatternElement& choice = *next.output.element;
    std::vector<PatternOutput> alternatives = choice.inputs;
    if (choice.kind == Kind::kOptional) {
      const PatternElement& node = *choice.inputs[0].element;
      if (node.inputs.empty()) {
        return Fail(
            "an Optional node must have inputs: the first one takes its place "
            "where the node is absent");
      }
      alternatives.push_back(node.inputs[0]);
    }
    for (const PatternOutput& alternative : alternatives) {
      PatternVariant decided = variant;
      decided.decisions.emplace_back(&choice, alternative);
      std::deque<Pending> rest = pending;
      rest.push_front(next);
      rest.front().output = alternative;
      Expand(std::move(decided), std::move(rest));
    }
  }

  // Adds the conditions of choices, the results, and the bodies of Each and
  // Repeated.
  void Finish(PatternVariant variant) {
    for (const auto& [choice, alternative] : variant.decisions) {
      // Not for the input in place of an absent Optional.
      bool is_input = false;
      for (const PatternOutput& input : choice->inputs) {
        is_input = is_input || input.element == alternative.element;
      }
      const int slot =
          variant.SlotOf(variant.Resolve(alternative).element.get());
      if (!is_input || slot < 0) continue;
      for (const AttrCondition& condition : choice->conditions) {
        variant.conditions.emplace_back(slot, &condition);
      }
    }
    if (results_ != nullptr) {
      for (const PatternOutput& result : *results_) {
        const PatternOutput output = variant.Resolve(result);
        const int slot = variant.SlotOf(output.element.get());
        for (const PatternElement* group : variant.slots) {
          if (slot < 0 && IsInGroup(group, output.element.get())) {
            return Fail(
                "AlsoReplace() cannot replace a node of an Each(...) or "
                "Repeated(...)");
          }
        }
        variant.results.emplace_back(slot, output.port);
      }
    }
    for (PatternStep& step : variant.steps) {
      if (!AddBodies(variant, step)) return;
    }
    if (variants_.size() == kMaxVariants) {
      return Fail("the pattern has more than " + std::to_string(kMaxVariants) +
                  " variants; split it into several rules with fewer choices "
                  "each");
    }
    variants_.push_back(std::move(variant));
  }
  static bool IsInGroup(const PatternElement* group,
                        const PatternElement* element) {
    return (group->kind == Kind::kEach && Contains(group, element)) ||
           (group->kind == Kind::kRepeated &&
            group->inputs[0].element.get() == element);
  }
  bool AddBodies(const PatternVariant& variant, PatternStep& step) {
    const bool is_chain = step.kind == StepKind::kRepeated;
    if (step.kind != StepKind::kEach && !is_chain) return true;
    step.bodies = std::make_shared<std::vector<PatternVariant>>();
    VariantBuilder builder(*step.bodies, nullptr);
    builder.is_body_ = true;
    builder.is_chain_ = is_chain;
    const auto slot = static_cast<size_t>(step.slot);
    builder.Expand({}, {{variant.slots[slot]->inputs[0]}});
    status_ = builder.status_;
    for (PatternVariant& body : *step.bodies) {
      for (const PatternElement* element : body.slots) {
        body.outer_slots.push_back(variant.SlotOf(element));
      }
    }
    return status_.ok();
  }

  static constexpr char kNested[] =
      "an Each(...) or Repeated(...) cannot contain another one";
  static absl::Status Malformed(std::string message) {
    return absl::InvalidArgumentError(message);
  }
  void Fail(std::string message) { status_ = Malformed(std::move(message)); }

  std::vector<PatternVariant>& variants_;
  const std::vector<PatternOutput>* const results_;
  const PatternElement* root_ = nullptr;
  bool is_body_ = false;   // Of an Each or Repeated.
  bool is_chain_ = false;  // Of a Repeated.
  absl::Status status_;
};

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_VARIANT_BUILDER_H_
