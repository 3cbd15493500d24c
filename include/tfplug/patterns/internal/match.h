// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_MATCH_H_
#define TFPLUG_PATTERNS_INTERNAL_MATCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tfplug/graph/node.h"
#include "tfplug/patterns/internal/element.h"
#include "tfplug/patterns/internal/variant.h"

#pragma GCC visibility push(hidden)

namespace tfplug::patterns_internal {

// The values that a variant of a pattern matched, by index: first the
// variant's slots, then the slots of each repetition (of an Each or Repeated).
class PatternMatch {
 public:
  // One input of an Each, or one node of a Repeated.
  struct Repetition {
    const PatternElement* group;
    const PatternVariant* body;
    size_t first;  // The index of the body's slot 0.
  };
  struct Size {
    size_t outputs, repetitions;
  };

  void Clear(const PatternVariant& variant) {
    variant_ = &variant;
    outputs_.resize(variant.slots.size());
    elements_.clear();
    repetitions_.clear();
  }

  const PatternVariant& variant() const { return *variant_; }
  Node root() const { return outputs_[0].node; }
  size_t size() const { return outputs_.size(); }
  Output& output(size_t i) { return outputs_[i]; }
  const Output& output(size_t i) const { return outputs_[i]; }
  // Returns null for an element of a repetition that also has a slot of the
  // variant.
  const PatternElement* element(size_t i) const {
    const size_t slots = variant_->slots.size();
    return i < slots ? variant_->slots[i] : elements_[i - slots];
  }
  bool IsNode(size_t i) const {
    return element(i) != nullptr && element(i)->is_node();
  }
  bool IsConsumed(size_t i) const {
    return element(i) != nullptr && element(i)->is_consumed();
  }

  const std::vector<Repetition>& repetitions() const { return repetitions_; }

  // Adds a repetition without values.
  Repetition& Add(const PatternElement* group, const PatternVariant& body) {
    repetitions_.push_back({group, &body, outputs_.size()});
    for (size_t i = 0; i < body.slots.size(); ++i) {
      elements_.push_back(body.outer_slots[i] < 0 ? body.slots[i] : nullptr);
      outputs_.emplace_back();
    }
    return repetitions_.back();
  }
  Size GetSize() const { return {outputs_.size(), repetitions_.size()}; }
  // Removes the repetitions that were added since GetSize().
  void Shrink(Size size) {
    outputs_.resize(size.outputs);
    elements_.resize(size.outputs - variant_->slots.size());
    repetitions_.erase(
        repetitions_.begin() + static_cast<std::ptrdiff_t>(size.repetitions),
        repetitions_.end());
  }

  // Calls visit(output) for each value of `pattern`: one, or one for each
  // repetition that contains it.
  template <class F>
  void ForEachValue(const PatternOutput& pattern, F visit) const {
    if (const int slot = SlotOf(*variant_, pattern, visit); slot >= 0) return;
    for (const Repetition& repetition : repetitions_) {
      SlotOf(*repetition.body, pattern, visit, repetition.first);
    }
  }

  // Returns the first of these values; null if there is none.
  Output FirstValue(const PatternOutput& pattern) const {
    Output first;
    ForEachValue(pattern, [&](const Output& value) {
      if (!first) first = value;
    });
    return first;
  }

  // Prepares AnyOf(); called after the last change.
  void Index() {
    by_node_.clear();
    if (outputs_.size() <= kFew) return;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const uint32_t id = outputs_[i] ? outputs_[i].node.id() : ~uint32_t{0};
      by_node_.emplace_back(id, static_cast<uint32_t>(i));
    }
    std::sort(by_node_.begin(), by_node_.end());
  }
  // Returns whether condition(index) is true for an index whose value is of
  // `node`.
  template <class F>
  bool AnyOf(const Node& node, F condition) const {
    if (outputs_.size() <= kFew) {
      for (size_t i = 0; i < outputs_.size(); ++i) {
        if (outputs_[i].node == node && condition(i)) return true;
      }
      return false;
    }
    auto it = std::lower_bound(by_node_.begin(), by_node_.end(),
                               std::make_pair(node.id(), uint32_t{0}));
    for (; it != by_node_.end() && it->first == node.id(); ++it) {
      if (condition(size_t{it->second})) return true;
    }
    return false;
  }

 private:
  // Up to this number of values, a linear search is faster.
  static constexpr size_t kFew = 24;

  template <class F>
  int SlotOf(const PatternVariant& variant, const PatternOutput& pattern,
             const F& visit, size_t first = 0) const {
    const PatternOutput output = variant.Resolve(pattern);
    const int slot = variant.SlotOf(output.element.get());
    if (slot >= 0) {
      const Output& found = outputs_[first + static_cast<size_t>(slot)];
      visit(output.element->is_node() ? Output{found.node, output.port}
                                      : found);
    }
    return slot;
  }

  const PatternVariant* variant_ = nullptr;
  std::vector<Output> outputs_;
  std::vector<const PatternElement*> elements_;  // Of the repetitions.
  std::vector<Repetition> repetitions_;
  // Node ids and indices, if there are more than kFew.
  std::vector<std::pair<uint32_t, uint32_t>> by_node_;
};

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_MATCH_H_
