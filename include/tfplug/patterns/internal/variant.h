// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_VARIANT_H_
#define TFPLUG_PATTERNS_INTERNAL_VARIANT_H_

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/patterns/internal/pattern_tree.h"

// A pattern with its choices made: which of a OneOf, with or without an
// Optional, which way round a commutative node. What is left is a list of steps
// from the root towards the inputs, each of which holds or does not: no step is
// ever taken back, and a match costs no memory.
namespace tfplug::internal {

// Goes from a node that is known already to one of its inputs.
struct PatternStep {
  int slot;    // What the input is bound to, or must equal.
  int parent;  // The slot of the node whose input it is.
  int input;
  int port;     // The output that it must be, if `slot` is a node.
  bool is_new;  // Whether this step is the first one to come to `slot`.
};

struct PatternVariant {
  // Slot 0 is the root, a kNode; others are kNode or kAny.
  std::vector<const PatternSpec*> slots;
  // By slot: the ops that a node may be of, as the PatternTable counts them.
  std::vector<std::vector<uint32_t>> ops;
  std::vector<PatternStep> steps;
  // What the choices stand for: a OneOf is the chosen one.
  std::vector<std::pair<const PatternSpec*, PatternOutput>> chosen;
  int root_port = 0;
  int num_nodes = 0;

  // The pattern that `output` stands for here, which may be one of `slots`.
  PatternOutput Resolve(PatternOutput output) const {
    for (const auto& [choice, taken] : chosen) {
      if (choice == output.spec.get()) return Resolve(taken);
    }
    return output;
  }
  // Its slot; -1 if it is not part of this variant.
  int SlotOf(const PatternSpec* spec) const {
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i] == spec) return static_cast<int>(i);
    }
    return -1;
  }
};

class VariantBuilder {
 public:
  // All variants of the pattern, in the order in which they are to be tried.
  // INVALID_ARGUMENT: in words that want the rule's name before them.
  static absl::Status Build(const PatternOutput& root,
                            std::vector<PatternVariant>& variants) {
    VariantBuilder builder(variants);
    builder.Expand({}, {{root, /*parent=*/-1, /*input=*/0}});
    return builder.status_;
  }

 private:
  // No sensible pattern has more, and each costs time.
  static constexpr size_t kMaxVariants = 256;

  struct Pending {
    PatternOutput what;
    int parent;
    int input;
  };

  explicit VariantBuilder(std::vector<PatternVariant>& variants)
      : variants_(variants) {}

  void Expand(PatternVariant variant, std::deque<Pending> pending) {
    while (!pending.empty() && status_.ok()) {
      Pending next = std::move(pending.front());
      pending.pop_front();
      next.what = variant.Resolve(next.what);
      const PatternSpec* spec = next.what.spec.get();
      const int known = variant.SlotOf(spec);
      if (known >= 0) {
        if (next.parent >= 0) {
          variant.steps.push_back({known, next.parent, next.input,
                                   next.what.port, /*is_new=*/false});
        }
        continue;
      }
      if (spec->kind == PatternSpec::Kind::kOneOf ||
          spec->kind == PatternSpec::Kind::kOptional) {
        Choose(variant, pending, next);
        return;
      }
      const int slot = static_cast<int>(variant.slots.size());
      if (!Take(variant, next, slot)) return;
      if (!spec->has_inputs) continue;
      std::vector<PatternOutput> inputs = spec->inputs;
      if (spec->is_commutative && inputs.size() >= 2) {
        auto other = pending;
        std::vector<PatternOutput> swapped = inputs;
        std::swap(swapped[0], swapped[1]);
        // This way round first: the other one after all that comes of it.
        auto first = pending;
        Append(first, inputs, slot);
        Append(other, swapped, slot);
        Expand(variant, std::move(first));
        Expand(std::move(variant), std::move(other));
        return;
      }
      Append(pending, inputs, slot);
    }
    if (!status_.ok()) return;
    if (variants_.size() == kMaxVariants) {
      status_ = absl::InvalidArgumentError(
          "the pattern can be met in more than " +
          std::to_string(kMaxVariants) +
          " ways; make several rules of it, with fewer choices each");
      return;
    }
    variants_.push_back(std::move(variant));
  }

  bool Take(PatternVariant& variant, const Pending& next, int slot) {
    const PatternSpec* spec = next.what.spec.get();
    if (slot == 0) {
      if (spec->kind != PatternSpec::Kind::kNode) {
        status_ = absl::InvalidArgumentError(
            "a pattern's root must be a node: Match<...>(...)");
        return false;
      }
      variant.root_port = next.what.port;
    } else {
      variant.steps.push_back(
          {slot, next.parent, next.input, next.what.port, /*is_new=*/true});
    }
    variant.slots.push_back(spec);
    variant.num_nodes += spec->kind == PatternSpec::Kind::kNode ? 1 : 0;
    return true;
  }

  static void Append(std::deque<Pending>& pending,
                     const std::vector<PatternOutput>& inputs, int parent) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      pending.push_back({inputs[i], parent, static_cast<int>(i)});
    }
  }

  void Choose(const PatternVariant& variant, const std::deque<Pending>& pending,
              const Pending& next) {
    const PatternSpec& spec = *next.what.spec;
    std::vector<PatternOutput> choices = spec.inputs;
    if (spec.kind == PatternSpec::Kind::kOptional) {
      const PatternSpec& node = *spec.inputs[0].spec;
      if (node.inputs.empty()) {
        status_ = absl::InvalidArgumentError(
            "an Optional node must have inputs: without it, its first one is "
            "there instead");
        return;
      }
      choices.push_back(node.inputs[0]);
    }
    for (const PatternOutput& choice : choices) {
      PatternVariant taken = variant;
      taken.chosen.emplace_back(&spec, choice);
      auto rest = pending;
      rest.push_front({choice, next.parent, next.input});
      Expand(std::move(taken), std::move(rest));
    }
  }

  std::vector<PatternVariant>& variants_;
  absl::Status status_;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_PATTERNS_INTERNAL_VARIANT_H_
