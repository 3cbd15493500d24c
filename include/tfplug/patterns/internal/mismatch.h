// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_MISMATCH_H_
#define TFPLUG_PATTERNS_INTERNAL_MISMATCH_H_

#include <string>

#include "absl/strings/string_view.h"
#include "tfplug/graph/node.h"
#include "tfplug/patterns/internal/pattern_tree.h"

// Why a pattern did not match: noted as pointers where it happens, and put into
// words only for who asks.
namespace tfplug::internal {

struct Mismatch {
  enum class Why {
    kNone,
    kRoot,         // `node` is of another op than the root.
    kOp,           // `other`, input `number` of `node`, is of another op.
    kInputCount,   // `node` has another number of inputs than the pattern.
    kPort,         // Input `number` of `node` is another output of `other`.
    kOtherValue,   // Input `number` of `node` is not the value met before.
    kSameNode,     // `node` is met in two places.
    kAttr,         // `attr` of `node` is not as wanted.
    kUsed,         // `node` is used by `other` too.
    kWaitedFor,    // `other` waits for `node` (a control edge).
    kPreserved,    // `node` is to be preserved.
    kOutputUsed,   // An output of `node` is used that would be gone.
    kDevice,       // `node` is on another device than `other`.
    kOtherDevice,  // `node` is on a device that is not the pass's.
    kOperandGone,  // The replacement would need an output of `node`.
    kCondition,    // One of the rule's conditions.
    kConstant,     // A constant could not be computed.
    kNoKernel,     // The plug-in has no kernel for the new op.
    kUnknownOp,    // This TensorFlow has no such op, or it wants more.
  };
  Why why = Why::kNone;
  int progress = 0;  // How far the variant came: to choose the best of many.
  Node node;
  Node other;
  int number = 0;
  const PatternSpec* spec = nullptr;
  const AttrCondition* attr = nullptr;
  std::string words;
};

inline std::string Quoted(const Node& node) {
  if (!node) return "missing";
  return "'" + std::string(node.name()) + "' (" + std::string(node.op()) + ")";
}
inline std::string OpsOf(const PatternSpec& spec) {
  std::string ops;
  for (const std::string& op : spec.ops) ops += (ops.empty() ? "" : "|") + op;
  return spec.label.empty() ? ops : ops + " (" + spec.label + ")";
}

// One attribute's value, in words.
inline std::string AttrInWords(const Node& node, absl::string_view attr) {
  if (!node.HasAttr(attr)) return "absent";
  if (auto v = node.GetAttr<bool>(attr); v.ok()) return ToWords(*v);
  if (auto v = node.GetAttr<int64_t>(attr); v.ok()) return ToWords(*v);
  if (auto v = node.GetAttr<float>(attr); v.ok()) return ToWords(*v);
  if (auto v = node.GetAttr<DataType>(attr); v.ok()) return ToWords(*v);
  if (auto v = node.GetAttr<std::string>(attr); v.ok()) return ToWords(*v);
  if (auto v = node.GetAttr<std::vector<int64_t>>(attr); v.ok()) {
    return ToWords(*v);
  }
  return "something else";
}

inline std::string InWords(const Mismatch& m) {
  const std::string input = "input " + std::to_string(m.number) + " of ";
  switch (m.why) {
    case Mismatch::Why::kNone:
      return "it matches";
    case Mismatch::Why::kRoot:
      return Quoted(m.node) + " is not " + OpsOf(*m.spec);
    case Mismatch::Why::kOp:
      return input + Quoted(m.node) + " is " + Quoted(m.other) + ", not " +
             OpsOf(*m.spec);
    case Mismatch::Why::kInputCount:
      return Quoted(m.node) + " has " + std::to_string(m.number) +
             " inputs, not " + std::to_string(m.spec->inputs.size());
    case Mismatch::Why::kPort:
      return input + Quoted(m.node) + " is another output of " +
             Quoted(m.other) + " than the pattern's";
    case Mismatch::Why::kOtherValue:
      return input + Quoted(m.node) + " is not the value that " +
             (m.spec->label.empty() ? "the pattern met before"
                                    : m.spec->label + " stands for");
    case Mismatch::Why::kSameNode:
      return Quoted(m.node) + " is met in two places of the pattern";
    case Mismatch::Why::kAttr:
      return Quoted(m.node) + ": attribute " + m.attr->attr + " is " +
             AttrInWords(m.node, m.attr->attr) + ", not " + m.attr->words;
    case Mismatch::Why::kUsed:
      return Quoted(m.node) + " is also used by " + Quoted(m.other);
    case Mismatch::Why::kWaitedFor:
      return Quoted(m.other) + " waits for " + Quoted(m.node);
    case Mismatch::Why::kPreserved:
      return Quoted(m.node) + " is to be preserved";
    case Mismatch::Why::kOutputUsed:
      return "output " + std::to_string(m.number) + " of " + Quoted(m.node) +
             " may be used, and the replacement has none such";
    case Mismatch::Why::kDevice:
      return Quoted(m.node) + " is on the device '" +
             std::string(m.node.device()) + "', " + Quoted(m.other) + " on '" +
             std::string(m.other.device()) + "'";
    case Mismatch::Why::kOtherDevice:
      return Quoted(m.node) + " is on the device '" +
             std::string(m.node.device()) + "', which is not the pass's";
    case Mismatch::Why::kOperandGone:
      return Quoted(m.node) +
             " would go, and is an operand of the pattern as well";
    case Mismatch::Why::kCondition:
      return "it does not hold that " + m.words;
    case Mismatch::Why::kConstant:
    case Mismatch::Why::kNoKernel:
    case Mismatch::Why::kUnknownOp:
      return m.words;
  }
  return "";
}

}  // namespace tfplug::internal

#endif  // TFPLUG_PATTERNS_INTERNAL_MISMATCH_H_
