// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_MISMATCH_H_
#define TFPLUG_PATTERNS_INTERNAL_MISMATCH_H_

#include <string>

#include "absl/strings/string_view.h"
#include "tfplug/graph/node.h"
#include "tfplug/patterns/internal/describe.h"
#include "tfplug/patterns/internal/element.h"

#pragma GCC visibility push(hidden)

// The reason why a pattern did not match. The matcher records handles and
// indices; only Rules::Explain turns them into text.
namespace tfplug::patterns_internal {

struct Mismatch {
  enum class Reason {
    kNone,
    kRootOp,           // `node` does not have the op of the root.
    kInputOp,          // `other`, input `index` of `node`, has another op.
    kInputCount,       // `node` has `index` inputs, unlike the pattern.
    kPort,             // Input `index` of `node` is not output `expected`.
    kOtherValue,       // Input `index` of `node` is not the value bound before.
    kOtherRepetition,  // As above, within an Each or Repeated: `node` is not
                       // `other`.
    kNoUser,           // No user of output `index` of `node` matches.
    kSameNode,         // `node` matches two elements of the pattern.
    kAttr,             // `attr` of `node` does not meet the condition.
    kUsed,             // `other`, outside the match, uses `node`.
    kControlUsed,      // `other` has a control edge from `node`.
    kPreserved,        // TensorFlow requires `node` to be preserved.
    kFed,              // `node` may be fed.
    kOutputUsed,       // Output `index` of `node` is used, but would vanish.
    kDevice,           // `node` is on another device than `other`.
    kOtherDevice,      // `node` is not on the pass's device type.
    kOperandConsumed,  // The replacement would need an output of `node`.
    kCycle,            // `node` is on a path from a replaced value to an
                       // operand.
    // Reasons with a text of their own:
    kCondition,  // A condition of the rule is not met.
    kConstant,   // A constant could not be computed.
    kNoKernel,   // The plug-in has no kernel for the new op.
    kOp,         // The new op is unknown, or needs other attributes.
  };
  Reason reason = Reason::kNone;
  int progress = 0;  // Orders mismatches; the furthest one is reported.
  Node node;
  Node other;
  int index = 0;
  int expected = 0;
  const PatternElement* element = nullptr;
  const AttrCondition* attr = nullptr;
  absl::string_view value;  // Of `attr`; null data if it has none.
  bool is_default = false;  // Whether `value` is the op's default.
  std::string text;
};

// Returns "2", or "at least 1" if one of the inputs is an Each().
inline std::string DescribeInputCount(const PatternElement& element) {
  size_t count = element.inputs.size();
  for (const PatternOutput& input : element.inputs) {
    if (input.element->kind == PatternElement::Kind::kEach) {
      return "at least " + std::to_string(count - 1);
    }
  }
  return std::to_string(count);
}

inline std::string Describe(const Mismatch& m) {
  using Reason = Mismatch::Reason;
  const std::string input = "input " + std::to_string(m.index) + " of ";
  const std::string on_device =
      " is on device '" + (m.node ? std::string(m.node.device()) : "") + "', ";
  switch (m.reason) {
    case Reason::kNone:
      return "matches";
    case Reason::kRootOp:
      return Describe(m.node) + " is not " + DescribeOps(*m.element);
    case Reason::kInputOp:
      return input + Describe(m.node) + " is " + Describe(m.other) + ", not " +
             DescribeOps(*m.element);
    case Reason::kInputCount:
      return Describe(m.node) + " has " + std::to_string(m.index) +
             " inputs, not " + DescribeInputCount(*m.element);
    case Reason::kPort:
      return input + Describe(m.node) + " is output " +
             std::to_string(m.node.input(m.index).port) + " of " +
             Describe(m.other) + ", not output " + std::to_string(m.expected);
    case Reason::kOtherValue:
      return input + Describe(m.node) + " is not the value " +
             (m.element->label.empty()
                  ? "that the same handle matched before"
                  : "that " + m.element->label + " matched before");
    case Reason::kOtherRepetition:
      return Describe(m.node) + " is not " + Describe(m.other) +
             ", which the same handle matched elsewhere";
    case Reason::kNoUser:
      return "no user of output " + std::to_string(m.index) + " of " +
             Describe(m.node) + " is " + DescribeOps(*m.element);
    case Reason::kSameNode:
      return Describe(m.node) + " would match two nodes of the pattern";
    case Reason::kAttr:
      return Describe(m.node) + ": attribute " + m.attr->attr + " is " +
             (m.is_default ? "absent, which means " : "") +
             DescribeAttr(m.value) + ", not " + m.attr->description;
    case Reason::kUsed:
      return Describe(m.node) + " is also used by " + Describe(m.other);
    case Reason::kControlUsed:
      return Describe(m.other) + " has a control edge from " + Describe(m.node);
    case Reason::kPreserved:
      return Describe(m.node) + " must be preserved";
    case Reason::kFed:
      return Describe(m.node) + " may be fed with another value";
    case Reason::kOutputUsed:
      return "output " + std::to_string(m.index) + " of " + Describe(m.node) +
             " may be used, but the replacement does not provide it";
    case Reason::kDevice:
      return Describe(m.node) + on_device + "but " + Describe(m.other) +
             " is on '" + std::string(m.other.device()) + "'";
    case Reason::kOtherDevice:
      return Describe(m.node) + on_device + "not on the pass's device";
    case Reason::kOperandConsumed:
      return Describe(m.node) +
             " would be removed, but is also an operand of the match";
    case Reason::kCycle:
      return "an operand of the match depends on one of its results, by way "
             "of " +
             Describe(m.node);
    case Reason::kCondition:
      return "condition not met: " + m.text;
    case Reason::kConstant:
    case Reason::kNoKernel:
    case Reason::kOp:
      return m.text;
  }
  return "";
}

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_MISMATCH_H_
