// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_MATCHED_H_
#define TFPLUG_PATTERNS_MATCHED_H_

#include "tfplug/graph/node.h"
#include "tfplug/patterns/internal/variant.h"
#include "tfplug/patterns/pattern.h"

namespace tfplug {

class PassContext;

// A pattern that was found: which node each of its handles stands for. Valid
// during the call that it is given to.
class Matched {
 public:
  // The value that `pattern` stands for; its node is null if the pattern was
  // met without it (Optional, OneOf).
  Output operator[](const Pattern& pattern) const {
    return (*this)[pattern.output()];
  }
  // The node; null as above.
  Node node(const Pattern& pattern) const { return (*this)[pattern].node; }
  bool has(const Pattern& pattern) const { return node(pattern) != Node(); }
  // The outermost node: the one whose place the replacement takes.
  Node root() const { return bound_[0].node; }
  // What the graph's pass can ask: shapes, kernels, ops.
  const PassContext& context() const { return *context_; }

  // ---- The mechanism's

  Matched(const internal::PatternVariant& variant, const Output* bound,
          const PassContext& context)
      : variant_(&variant), bound_(bound), context_(&context) {}
  Output operator[](const internal::PatternOutput& pattern) const {
    const internal::PatternOutput output = variant_->Resolve(pattern);
    const int slot = variant_->SlotOf(output.spec.get());
    if (slot < 0) return Output{};
    const Output& bound = bound_[slot];
    return output.spec->kind == internal::PatternSpec::Kind::kNode
               ? Output{bound.node, output.port}
               : bound;
  }

 private:
  const internal::PatternVariant* variant_;
  const Output* bound_;  // By slot.
  const PassContext* context_;
};

}  // namespace tfplug

#endif  // TFPLUG_PATTERNS_MATCHED_H_
