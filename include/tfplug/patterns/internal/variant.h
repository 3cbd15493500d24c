// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_VARIANT_H_
#define TFPLUG_PATTERNS_INTERNAL_VARIANT_H_

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/patterns/internal/element.h"

#pragma GCC visibility push(hidden)

// A variant is a pattern in which every choice is decided: the alternative of
// each OneOf, whether each Optional is present, and the input order of each
// commutative node. It is a list of steps from the root to the inputs. Each
// step succeeds or fails, so that matching needs no backtracking and allocates
// no memory.
namespace tfplug::internal {

// Goes from a bound node to one of its inputs.
struct PatternStep {
  int slot;     // Receives the input, or must already hold it.
  int parent;   // The slot of the node that has the input.
  int input;    // The index of the input.
  int port;     // The output that must be the input, if `slot` is a kNode.
  bool is_new;  // Whether this is the first step to `slot`.
};

struct PatternVariant {
  // Slot 0 is the root, a kNode; other slots are kNode or kAny.
  std::vector<const PatternElement*> slots;
  // By slot: the ops that the node may have, as indices in the PatternTable.
  std::vector<std::vector<uint32_t>> ops;
  std::vector<PatternStep> steps;
  // Each decided OneOf or Optional, and the alternative in its place.
  std::vector<std::pair<const PatternElement*, PatternOutput>> decisions;
  int root_port = 0;
  int num_nodes = 0;

  // Returns the alternative in place of `output`, or `output` itself.
  PatternOutput Resolve(PatternOutput output) const {
    for (const auto& [choice, alternative] : decisions) {
      if (choice == output.element.get()) return Resolve(alternative);
    }
    return output;
  }
  // Returns the slot of `element`; -1 if this variant does not contain it.
  int SlotOf(const PatternElement* element) const {
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i] == element) return static_cast<int>(i);
    }
    return -1;
  }
};

class VariantBuilder {
 public:
  // Finds all variants of the pattern, in the order in which they are tried.
  // INVALID_ARGUMENT for a malformed pattern; the caller adds the rule's name.
  static absl::Status Build(const PatternOutput& root,
                            std::vector<PatternVariant>& variants) {
    VariantBuilder builder(variants);
    builder.Expand({}, {{root, /*parent=*/-1, /*input=*/0}});
    return builder.status_;
  }

 private:
  // A limit on the time for matching, above the needs of realistic patterns.
  static constexpr size_t kMaxVariants = 256;

  struct Pending {
    PatternOutput output;
    int parent;
    int input;
  };

  explicit VariantBuilder(std::vector<PatternVariant>& variants)
      : variants_(variants) {}

  void Expand(PatternVariant variant, std::deque<Pending> pending) {
    while (!pending.empty() && status_.ok()) {
      Pending next = std::move(pending.front());
      pending.pop_front();
      next.output = variant.Resolve(next.output);
      const PatternElement* element = next.output.element.get();
      const int known = variant.SlotOf(element);
      if (known >= 0) {
        if (next.parent >= 0) {
          variant.steps.push_back({known, next.parent, next.input,
                                   next.output.port, /*is_new=*/false});
        }
        continue;
      }
      if (element->kind == PatternElement::Kind::kOneOf ||
          element->kind == PatternElement::Kind::kOptional) {
        Decide(variant, pending, next);
        return;
      }
      const int slot = static_cast<int>(variant.slots.size());
      if (!AddSlot(variant, next, slot)) return;
      if (!element->has_inputs) continue;
      std::vector<PatternOutput> inputs = element->inputs;
      if (element->is_commutative && inputs.size() >= 2) {
        auto in_order = pending;
        Append(in_order, inputs, slot);
        Expand(variant, std::move(in_order));
        std::swap(inputs[0], inputs[1]);
        Append(pending, inputs, slot);
        Expand(std::move(variant), std::move(pending));
        return;
      }
      Append(pending, inputs, slot);
    }
    if (!status_.ok()) return;
    if (variants_.size() == kMaxVariants) {
      status_ = absl::InvalidArgumentError(
          "the pattern has more than " + std::to_string(kMaxVariants) +
          " variants; split it into several rules with fewer choices each");
      return;
    }
    variants_.push_back(std::move(variant));
  }

  bool AddSlot(PatternVariant& variant, const Pending& next, int slot) {
    const PatternElement* element = next.output.element.get();
    if (slot == 0) {
      if (!element->is_node()) {
        status_ = absl::InvalidArgumentError(
            "the root of a pattern must be a node; use Match<...>(...)");
        return false;
      }
      variant.root_port = next.output.port;
    } else {
      variant.steps.push_back(
          {slot, next.parent, next.input, next.output.port, /*is_new=*/true});
    }
    variant.slots.push_back(element);
    variant.num_nodes += element->is_node() ? 1 : 0;
    return true;
  }

  static void Append(std::deque<Pending>& pending,
                     const std::vector<PatternOutput>& inputs, int parent) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      pending.push_back({inputs[i], parent, static_cast<int>(i)});
    }
  }

  void Decide(const PatternVariant& variant, const std::deque<Pending>& pending,
              const Pending& next) {
    const PatternElement& choice = *next.output.element;
    std::vector<PatternOutput> alternatives = choice.inputs;
    if (choice.kind == PatternElement::Kind::kOptional) {
      const PatternElement& node = *choice.inputs[0].element;
      if (node.inputs.empty()) {
        status_ = absl::InvalidArgumentError(
            "an Optional node must have inputs: the first one takes its place "
            "where the node is absent");
        return;
      }
      alternatives.push_back(node.inputs[0]);
    }
    for (const PatternOutput& alternative : alternatives) {
      PatternVariant decided = variant;
      decided.decisions.emplace_back(&choice, alternative);
      auto rest = pending;
      rest.push_front({alternative, next.parent, next.input});
      Expand(std::move(decided), std::move(rest));
    }
  }

  std::vector<PatternVariant>& variants_;
  absl::Status status_;
};

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_VARIANT_H_
