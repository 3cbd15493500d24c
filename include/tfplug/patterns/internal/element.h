// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_ELEMENT_H_
#define TFPLUG_PATTERNS_INTERNAL_ELEMENT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tfplug/graph/node.h"

#pragma GCC visibility push(hidden)

// The data behind the handles of patterns/pattern.h: a tree of elements (a DAG
// where a handle is used twice).
namespace tfplug::internal {

struct PatternElement;

// An output of the node that matches `element`.
struct PatternOutput {
  std::shared_ptr<PatternElement> element;
  int port = 0;
};

// One condition on one attribute.
struct AttrCondition {
  std::string op;           // The op whose nodes are checked; empty: any op.
  std::string attr;         // The attribute's name.
  std::string description;  // For explanations: "true", "one of 1, 2".
  std::function<bool(const Node&)> predicate;
};

struct PatternElement {
  enum class Kind {
    kAny,       // Any output of any node.
    kNode,      // A node of one of `ops`, with `inputs`.
    kOneOf,     // One of `inputs`, tried in this order.
    kOptional,  // inputs[0], or the first input of that pattern in its place.
  };
  Kind kind = Kind::kAny;
  std::string label;             // For explanations; may be empty.
  std::vector<std::string> ops;  // For kNode.
  std::vector<PatternOutput> inputs;
  bool has_inputs = false;      // For kNode; false: any inputs match.
  bool is_commutative = false;  // The first two inputs may be swapped.
  bool may_have_other_uses = false;
  bool has_many_outputs = false;  // Whether any of `ops` has more than one.
  std::vector<AttrCondition> conditions;

  bool is_node() const { return kind == Kind::kNode; }
  // Whether a replacement consumes the matched node: the node is removed or, if
  // it is the root, becomes the new node.
  bool is_consumed() const { return is_node() && !may_have_other_uses; }
};

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_ELEMENT_H_
