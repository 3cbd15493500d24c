// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_MATCHED_H_
#define TFPLUG_PATTERNS_MATCHED_H_

#include "tfplug/base/internal/access.h"
#include "tfplug/graph/node.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/patterns/internal/variant.h"
#include "tfplug/patterns/pattern.h"

#pragma GCC visibility push(hidden)

namespace tfplug::patterns {

// The nodes and values that the handles of a pattern matched. Valid only during
// the call that receives it.
class Matched {
 public:
  // Returns the value that `pattern` matched. Its node is null if the match
  // does not contain the pattern (Optional, OneOf).
  Output operator[](const Pattern& pattern) const {
    return Find(internal::Access::output(pattern));
  }
  // Returns the node that `pattern` matched; null as above.
  Node node(const Pattern& pattern) const { return (*this)[pattern].node; }
  bool has(const Pattern& pattern) const { return node(pattern) != Node(); }
  // Returns the outermost node, whose place the replacement takes.
  Node root() const { return bound_[0].node; }
  // Returns the pass's context: shapes, kernels, ops.
  const PassContext& context() const { return *context_; }

 private:
  friend struct internal::Access;

  Matched(const internal::PatternVariant& variant, const Output* bound,
          const PassContext& context)
      : variant_(&variant), bound_(bound), context_(&context) {}

  Output Find(const internal::PatternOutput& pattern) const {
    const internal::PatternOutput output = variant_->Resolve(pattern);
    const int slot = variant_->SlotOf(output.element.get());
    if (slot < 0) return Output{};
    const Output& bound = bound_[slot];
    return output.element->is_node() ? Output{bound.node, output.port} : bound;
  }

  const internal::PatternVariant* variant_;
  const Output* bound_;  // By slot.
  const PassContext* context_;
};

}  // namespace tfplug::patterns

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_MATCHED_H_
