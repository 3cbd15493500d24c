// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_ELEMENT_H_
#define TFPLUG_PATTERNS_INTERNAL_ELEMENT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#pragma GCC visibility push(hidden)

// The data behind the handles of patterns/pattern.h: a tree of elements (a DAG
// where a handle is used twice).
namespace tfplug::patterns_internal {

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
  // Takes the serialized AttrValue of the node, or else the op's default; null
  // data if there is neither.
  std::function<bool(absl::string_view)> predicate;
};

struct PatternElement {
  enum class Kind {
    kAny,       // Any output of any node.
    kNode,      // A node of one of `ops`, with `inputs`.
    kOneOf,     // One of `inputs`, tried in this order.
    kOptional,  // inputs[0], or the first input of that pattern in its place.
    kEach,      // Any number of inputs of a node, each of which is inputs[0].
    kRepeated,  // Any number of nodes like inputs[0], each the first input of
                // the one before, and then the first input of inputs[0].
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
  bool is_choice() const {
    return kind == Kind::kOneOf || kind == Kind::kOptional;
  }
  // Returns whether a replacement consumes the matched node: the node is
  // removed or, if it is the root, becomes the new node.
  bool is_consumed() const { return is_node() && !may_have_other_uses; }
};

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_ELEMENT_H_
