// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_ATTRIBUTES_H_
#define TFPLUG_PATTERNS_INTERNAL_ATTRIBUTES_H_

#include <cstddef>

#include "absl/strings/string_view.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/node.h"
#include "tfplug/graph/op_signature.h"
#include "tfplug/patterns/internal/element.h"
#include "tfplug/patterns/internal/match.h"
#include "tfplug/patterns/internal/mismatch.h"
#include "tfplug/patterns/internal/variant.h"

#pragma GCC visibility push(hidden)

namespace tfplug::patterns_internal {

// Checks the conditions on the attributes of matched nodes.
class PatternAttributes {
 public:
  PatternAttributes(const PatternMatch& match, const PassContext& context,
                    Mismatch& mismatch)
      : match_(match), context_(context), mismatch_(mismatch) {}

  // The slots of `variant` begin at index `base` of the match.
  bool Check(const PatternVariant& variant, size_t base, int progress) {
    for (size_t i = 0; i < variant.slots.size(); ++i) {
      for (const AttrCondition& condition : variant.slots[i]->conditions) {
        ++progress;
        if (!CheckAttribute(condition, match_.output(base + i).node,
                            progress)) {
          return false;
        }
      }
    }
    for (const auto& [slot, condition] : variant.conditions) {
      if (!variant.slots[static_cast<size_t>(slot)]->is_node()) continue;
      ++progress;
      if (!CheckAttribute(*condition,
                          match_.output(base + static_cast<size_t>(slot)).node,
                          progress)) {
        return false;
      }
    }
    return true;
  }

 private:
  bool CheckAttribute(const AttrCondition& condition, const Node& node,
                      int progress) {
    if (!condition.op.empty() && node.op() != condition.op) return true;
    absl::string_view value = node.RawAttr(condition.attr);
    const bool is_default = value.data() == nullptr;
    if (is_default) value = DefaultOf(node, condition.attr);
    if (condition.predicate(value)) return true;
    mismatch_.reason = Mismatch::Reason::kAttr;
    mismatch_.progress = progress;
    mismatch_.node = node;
    mismatch_.attr = &condition;
    mismatch_.value = value;
    mismatch_.is_default = is_default && value.data() != nullptr;
    return false;
  }
  // Returns null data if the op's definition has no default.
  absl::string_view DefaultOf(const Node& node, absl::string_view attr) const {
    const auto signature = context_.functions().GetSignature(node.op());
    if (!signature.ok()) return {};
    const OpSignature::Attr* found = (*signature)->FindAttr(attr);
    if (found == nullptr || !found->has_default) return {};
    return found->default_value;
  }

  const PatternMatch& match_;
  const PassContext& context_;
  Mismatch& mismatch_;
};

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_ATTRIBUTES_H_
