// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_MATCHER_H_
#define TFPLUG_PATTERNS_INTERNAL_MATCHER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/node.h"
#include "tfplug/patterns/internal/mismatch.h"
#include "tfplug/patterns/internal/variant.h"

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// Matches variants of patterns with nodes. The values that a match binds are
// valid until the next call of Match(). Cheap checks come first: ops, then
// attributes, then the surrounding graph.
class PatternMatcher {
 public:
  // `graph_ops`: see PatternTable::FindOps.
  PatternMatcher(const PassContext& context,
                 const std::vector<uint32_t>& graph_ops)
      : context_(context), graph_ops_(graph_ops) {}

  // Returns whether `variant` matches with `root` as its root; otherwise,
  // mismatch() has the reason.
  bool Match(const PatternVariant& variant, const Node& root) {
    variant_ = &variant;
    const PatternElement& element = *variant.slots[0];
    if (!HasOp(0, root)) return Fail(Reason::kRootOp, 0, root, {}, 0, &element);
    return CheckInputCount(element, root, 1) && MatchStructure(root) &&
           MatchAttributes() && CheckSurroundings();
  }

  // The matched values, by slot.
  const Output* bound() const { return bound_.data(); }
  const Mismatch& mismatch() const { return mismatch_; }

 private:
  using Reason = Mismatch::Reason;

  bool Fail(Reason reason, int progress, const Node& node,
            const Node& other = Node(), int index = 0,
            const PatternElement* element = nullptr,
            const AttrCondition* attr = nullptr) {
    mismatch_.reason = reason;
    mismatch_.progress = progress;
    mismatch_.node = node;
    mismatch_.other = other;
    mismatch_.index = index;
    mismatch_.element = element;
    mismatch_.attr = attr;
    return false;
  }

  bool HasOp(int slot, const Node& node) const {
    const uint32_t node_op = node.op_id();
    for (uint32_t op : variant_->ops[Index(slot)]) {
      if (graph_ops_[op] == node_op) return true;
    }
    return false;
  }
  bool CheckInputCount(const PatternElement& element, const Node& node,
                       int progress) {
    if (!element.has_inputs) return true;
    const int count = node.num_inputs();
    return count == static_cast<int>(element.inputs.size()) ||
           Fail(Reason::kInputCount, progress, node, {}, count, &element);
  }

  bool MatchStructure(const Node& root) {
    bound_.resize(variant_->slots.size());
    bound_[0] = Output{root, variant_->root_port};
    int progress = 1;
    for (const PatternStep& step : variant_->steps) {
      ++progress;
      const Node& parent = bound_[Index(step.parent)].node;
      const Output output = parent.input(step.input);
      const PatternElement& element = *variant_->slots[Index(step.slot)];
      const bool is_node = element.is_node();
      if (step.is_new) {
        if (!output.node || (is_node && !HasOp(step.slot, output.node))) {
          return Fail(Reason::kInputOp, progress, parent, output.node,
                      step.input, &element);
        }
        if (is_node && !CheckInputCount(element, output.node, progress)) {
          return false;
        }
        bound_[Index(step.slot)] = output;
      } else {
        const Output& before = bound_[Index(step.slot)];
        if (before.node != output.node ||
            (!is_node && before.port != output.port)) {
          return Fail(Reason::kOtherValue, progress, parent, output.node,
                      step.input, &element);
        }
      }
      if (is_node && output.port != step.port) {
        mismatch_.expected = step.port;
        return Fail(Reason::kPort, progress, parent, output.node, step.input);
      }
    }
    return true;
  }

  bool MatchAttributes() {
    int progress = static_cast<int>(variant_->steps.size()) + 1;
    for (size_t i = 0; i < variant_->slots.size(); ++i) {
      const Node& node = bound_[i].node;
      for (const AttrCondition& condition : variant_->slots[i]->conditions) {
        ++progress;
        if (!condition.op.empty() && node.op() != condition.op) continue;
        if (!condition.predicate(node)) {
          return Fail(Reason::kAttr, progress, node, {}, 0, nullptr,
                      &condition);
        }
      }
    }
    return true;
  }

  // Checks that the rest of the graph does not need the consumed nodes.
  bool CheckSurroundings() {
    constexpr int kFar = 1 << 20;  // Beyond any structure or attribute.
    if (!CheckOverlap(kFar) || !CheckDevice(kFar + 1) || !CheckRoot(kFar + 1)) {
      return false;
    }
    for (size_t i = 1; i < bound_.size(); ++i) {
      if (variant_->slots[i]->is_consumed() &&
          !CheckInner(bound_[i].node, kFar + 2)) {
        return false;
      }
    }
    return true;
  }
  // Checks that no node matches two elements. Exception: a node that is kept
  // may also be an operand.
  bool CheckOverlap(int progress) {
    const std::vector<const PatternElement*>& slots = variant_->slots;
    for (size_t i = 0; i < slots.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (bound_[i].node != bound_[j].node) continue;
        if (slots[i]->is_node() && slots[j]->is_node()) {
          return Fail(Reason::kSameNode, progress, bound_[i].node);
        }
        if (slots[i]->is_consumed() || slots[j]->is_consumed()) {
          return Fail(Reason::kOperandConsumed, progress, bound_[i].node);
        }
      }
    }
    return true;
  }
  // Checks the root's device. A node without a device (in a function that
  // TensorFlow has not placed yet) may be placed on any device.
  bool CheckDevice(int progress) {
    const Node& root = bound_[0].node;
    return root.device().empty() || context_.IsOnDevice(root.device()) ||
           Fail(Reason::kOtherDevice, progress, root);
  }
  // Checks that only the matched output of the root is used, because the
  // replacement has no others.
  bool CheckRoot(int progress) {
    if (!variant_->slots[0]->has_many_outputs) return true;
    const Node& root = bound_[0].node;
    for (const Use use : root.uses()) {
      if (use.is_control()) continue;
      const int port = use.node.input(use.input).port;
      if (port != variant_->root_port) {
        return Fail(Reason::kOutputUsed, progress, root, {}, port);
      }
    }
    // TensorFlow does not report which output of a preserved node is fetched.
    return !context_.IsPreserved(root.name()) ||
           Fail(Reason::kOutputUsed, progress, root, {},
                variant_->root_port == 0 ? 1 : 0);
  }
  // Checks that nothing outside the match needs `node`.
  bool CheckInner(const Node& node, int progress) {
    const Node& root = bound_[0].node;
    if (node.device() != root.device()) {
      return Fail(Reason::kDevice, progress, node, root);
    }
    for (const Use use : node.uses()) {
      if (!IsConsumed(use.node)) {
        return Fail(use.is_control() ? Reason::kControlUsed : Reason::kUsed,
                    progress, node, use.node);
      }
    }
    return !context_.IsPreserved(node.name()) ||
           Fail(Reason::kPreserved, progress, node);
  }
  bool IsConsumed(const Node& node) const {
    for (size_t i = 0; i < bound_.size(); ++i) {
      if (bound_[i].node == node &&
          (i == 0 || variant_->slots[i]->is_consumed())) {
        return true;
      }
    }
    return false;
  }

  static size_t Index(int slot) { return static_cast<size_t>(slot); }

  const PassContext& context_;
  const std::vector<uint32_t>& graph_ops_;
  const PatternVariant* variant_ = nullptr;
  std::vector<Output> bound_;  // By slot.
  Mismatch mismatch_;
};

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_MATCHER_H_
