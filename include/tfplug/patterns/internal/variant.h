// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_VARIANT_H_
#define TFPLUG_PATTERNS_INTERNAL_VARIANT_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tfplug/patterns/internal/element.h"

#pragma GCC visibility push(hidden)

// A variant is a pattern in which every choice is decided: the alternative of
// each OneOf, whether each Optional is present, and the input order of the root
// if it is commutative. It is a list of steps. Each step succeeds or fails,
// except that the matcher tries both orders of the inputs of inner commutative
// nodes, and all candidates of a kUse.
namespace tfplug::patterns_internal {

struct PatternVariant;

// Goes from a bound value to another one.
struct PatternStep {
  enum class Kind {
    kInput,     // `slot` receives or equals an input of the node in `parent`.
    kSame,      // `slot` receives or equals the value in `parent`.
    kUse,       // `slot` receives a node that uses the value in `parent`.
    kEach,      // All inputs from `input` on, except the last `after`, match.
    kRepeated,  // `slot` receives the value before a chain that ends in an
                // input of the node in `parent`.
  };
  Kind kind;
  int slot;
  int parent;
  int input;    // The index of the input; with from_end, counted from the end.
  int port;     // The output that must be the input, if `slot` is a kNode; for
                // kUse, the output that is used, if `parent` is a kNode.
  bool is_new;  // Whether this is the first step to `slot`.
  bool from_end;  // Whether the input comes after an Each.
  int after = 0;
  // The commutative node of which this is one of the first two inputs, as an
  // index below num_swaps; -1: none. Inputs 0 and 1 may be swapped.
  int swap = -1;
  bool starts_swap = false;  // Whether this is the first step with this `swap`.
  // For kEach and kRepeated: what one input or one node of the chain matches.
  std::shared_ptr<std::vector<PatternVariant>> bodies;
};

struct PatternVariant {
  // Slot 0 is the root. A kNode, except in the body of an Each; other slots
  // hold any kind but choices.
  std::vector<const PatternElement*> slots;
  // By slot: the ops that the node may have, as indices in the PatternTable.
  std::vector<std::vector<uint32_t>> ops;
  std::vector<PatternStep> steps;
  // Each decided OneOf or Optional, and the alternative in its place.
  std::vector<std::pair<const PatternElement*, PatternOutput>> decisions;
  // The conditions of choices, with the slot of the decided alternative.
  std::vector<std::pair<int, const AttrCondition*>> conditions;
  // The outputs that are replaced besides the root's, in the order of the rule:
  // slot and port; slot -1 if this variant does not contain the node.
  std::vector<std::pair<int, int>> results;
  // In the body of an Each or Repeated, by slot: the slot of the same element
  // outside, or -1.
  std::vector<int> outer_slots;
  int num_swaps = 0;
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
  // Returns whether output `port` of the node in `slot` is replaced.
  bool IsResult(int slot, int port) const {
    if (slot == 0 && port == root_port) return true;
    for (const auto& result : results) {
      if (result.first == slot && result.second == port) return true;
    }
    return false;
  }
  bool HasResult(int slot) const {
    bool found = slot == 0;
    for (const auto& result : results) found = found || result.first == slot;
    return found;
  }
};

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_VARIANT_H_
