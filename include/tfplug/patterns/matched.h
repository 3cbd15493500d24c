// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_MATCHED_H_
#define TFPLUG_PATTERNS_MATCHED_H_

#include <vector>

#include "tfplug/base/internal/access.h"
#include "tfplug/graph/node.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/patterns/internal/match.h"
#include "tfplug/patterns/pattern.h"

#pragma GCC visibility push(hidden)

namespace tfplug::patterns {

// The nodes and values that the handles of a pattern matched. Valid only during
// the call that receives it.
class Matched {
 public:
  // Returns the value that `pattern` matched; the first one, if it is within an
  // Each or Repeated. Its node is null if the match does not contain the
  // pattern (Optional, OneOf, a list or chain of length zero).
  Output operator[](const Pattern& pattern) const {
    return Find(internal::Access::output(pattern));
  }
  // Returns the node that `pattern` matched; null as above.
  Node node(const Pattern& pattern) const { return (*this)[pattern].node; }
  bool has(const Pattern& pattern) const { return node(pattern) != Node(); }
  // Returns all values that `pattern` matched, in the order of the inputs of an
  // Each, or from the end of the chain of a Repeated to its beginning.
  std::vector<Output> all(const Pattern& pattern) const {
    std::vector<Output> values;
    match_->ForEachValue(internal::Access::output(pattern),
                         [&](const Output& value) { values.push_back(value); });
    return values;
  }
  // Returns the outermost node, whose place the replacement takes.
  Node root() const { return match_->root(); }
  // Returns the pass's context: shapes, kernels, ops.
  const PassContext& context() const { return *context_; }

 private:
  friend struct internal::Access;

  Matched(const patterns_internal::PatternMatch& match,
          const PassContext& context)
      : match_(&match), context_(&context) {}

  Output Find(const patterns_internal::PatternOutput& pattern) const {
    return match_->FirstValue(pattern);
  }

  const patterns_internal::PatternMatch* match_;
  const PassContext* context_;
};

}  // namespace tfplug::patterns

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_MATCHED_H_
