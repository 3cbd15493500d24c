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

namespace tfplug::internal {

// Tries variants of patterns on nodes. What was found is valid until the next
// try. The cheap questions come first: ops, then attributes, then what the rest
// of the graph has to say.
class PatternMatcher {
 public:
  // `numbers`: see PatternTable::FindOps.
  PatternMatcher(const PassContext& context,
                 const std::vector<uint32_t>& numbers)
      : context_(context), numbers_(numbers) {}

  // Whether `variant` matches with `root` in its root's place; if not,
  // mismatch() says why.
  bool Match(const PatternVariant& variant, const Node& root) {
    variant_ = &variant;
    const PatternSpec& spec = *variant.slots[0];
    if (!HasOp(0, root)) return Fail(Why::kRoot, 0, root, {}, 0, &spec);
    return CheckInputCount(spec, root, 1) && MatchStructure(root) &&
           MatchAttributes() && CheckSurroundings();
  }

  const Output* bound() const { return bound_.data(); }
  const Mismatch& mismatch() const { return mismatch_; }

  // Whether the node goes when the pattern is replaced, or becomes the new one.
  static bool Goes(const PatternSpec& spec) {
    return spec.kind == PatternSpec::Kind::kNode && !spec.may_have_other_uses;
  }

 private:
  using Why = Mismatch::Why;

  bool Fail(Why why, int progress, const Node& node, const Node& other = Node(),
            int number = 0, const PatternSpec* spec = nullptr,
            const AttrCondition* attr = nullptr) {
    mismatch_.why = why;
    mismatch_.progress = progress;
    mismatch_.node = node;
    mismatch_.other = other;
    mismatch_.number = number;
    mismatch_.spec = spec;
    mismatch_.attr = attr;
    return false;
  }

  bool HasOp(int slot, const Node& node) const {
    const uint32_t number = node.op_id();
    for (uint32_t op : variant_->ops[Index(slot)]) {
      if (numbers_[op] == number) return true;
    }
    return false;
  }
  bool CheckInputCount(const PatternSpec& spec, const Node& node,
                       int progress) {
    if (!spec.has_inputs) return true;
    const int count = node.num_inputs();
    return count == static_cast<int>(spec.inputs.size()) ||
           Fail(Why::kInputCount, progress, node, {}, count, &spec);
  }

  bool MatchStructure(const Node& root) {
    bound_.resize(variant_->slots.size());
    bound_[0] = Output{root, variant_->root_port};
    int progress = 1;
    for (const PatternStep& step : variant_->steps) {
      ++progress;
      const Node& parent = bound_[Index(step.parent)].node;
      const Output output = parent.input(step.input);
      const PatternSpec& spec = *variant_->slots[Index(step.slot)];
      const bool is_node = spec.kind == PatternSpec::Kind::kNode;
      if (step.is_new) {
        if (!output.node || (is_node && !HasOp(step.slot, output.node))) {
          return Fail(Why::kOp, progress, parent, output.node, step.input,
                      &spec);
        }
        if (is_node && !CheckInputCount(spec, output.node, progress)) {
          return false;
        }
        bound_[Index(step.slot)] = output;
      } else {
        const Output& before = bound_[Index(step.slot)];
        if (before.node != output.node ||
            (!is_node && before.port != output.port)) {
          return Fail(Why::kOtherValue, progress, parent, output.node,
                      step.input, &spec);
        }
      }
      if (is_node && output.port != step.port) {
        return Fail(Why::kPort, progress, parent, output.node, step.input,
                    &spec);
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
        if (!condition.holds(node)) {
          return Fail(Why::kAttr, progress, node, {}, 0, nullptr, &condition);
        }
      }
    }
    return true;
  }

  // That the nodes can go, as far as the rest of the graph is concerned.
  bool CheckSurroundings() {
    constexpr int kFar = 1 << 20;  // Further than any structure or attribute.
    const std::vector<const PatternSpec*>& slots = variant_->slots;
    for (size_t i = 0; i < slots.size(); ++i) {
      const bool is_node = slots[i]->kind == PatternSpec::Kind::kNode;
      for (size_t j = 0; j < i; ++j) {
        if (bound_[i].node != bound_[j].node) continue;
        const bool other_is_node = slots[j]->kind == PatternSpec::Kind::kNode;
        if (is_node && other_is_node) {
          return Fail(Why::kSameNode, kFar, bound_[i].node);
        }
        // A value that was looked for as just any one, of a node that goes.
        if ((is_node && Goes(*slots[i])) ||
            (other_is_node && Goes(*slots[j]))) {
          return Fail(Why::kOperandGone, kFar, bound_[i].node);
        }
      }
    }
    if (!CheckDevice(kFar + 1) || !CheckRoot(kFar + 1)) return false;
    for (size_t i = 1; i < slots.size(); ++i) {
      if (Goes(*slots[i]) && !CheckInner(bound_[i].node, kFar + 2)) {
        return false;
      }
    }
    return true;
  }

  // Nodes without a device (in functions that core has not placed yet) may
  // come to be on any.
  bool CheckDevice(int progress) {
    const Node& root = bound_[0].node;
    return root.device().empty() || context_.IsOnDevice(root.device()) ||
           Fail(Why::kOtherDevice, progress, root);
  }
  // The root's name stays, and one output.
  bool CheckRoot(int progress) {
    if (!variant_->slots[0]->has_many_outputs) return true;
    const Node& root = bound_[0].node;
    for (const Use use : root.uses()) {
      if (use.is_control()) continue;
      const int port = use.node.input(use.input).port;
      if (port != variant_->root_port) {
        return Fail(Why::kOutputUsed, progress, root, {}, port);
      }
    }
    // Which output is fetched, a name does not say.
    return !context_.IsPreserved(root.name()) ||
           Fail(Why::kOutputUsed, progress, root, {},
                variant_->root_port == 0 ? 1 : 0);
  }

  // `node` goes, so nothing else may need it.
  bool CheckInner(const Node& node, int progress) {
    const Node& root = bound_[0].node;
    if (node.device() != root.device()) {
      return Fail(Why::kDevice, progress, node, root);
    }
    for (const Use use : node.uses()) {
      if (!IsPartOfMatch(use.node)) {
        return Fail(use.is_control() ? Why::kWaitedFor : Why::kUsed, progress,
                    node, use.node);
      }
    }
    return !context_.IsPreserved(node.name()) ||
           Fail(Why::kPreserved, progress, node);
  }
  bool IsPartOfMatch(const Node& node) const {
    for (size_t i = 0; i < bound_.size(); ++i) {
      if (bound_[i].node == node && (i == 0 || Goes(*variant_->slots[i]))) {
        return true;
      }
    }
    return false;
  }

  static size_t Index(int slot) { return static_cast<size_t>(slot); }

  const PassContext& context_;
  const std::vector<uint32_t>& numbers_;
  const PatternVariant* variant_ = nullptr;
  std::vector<Output> bound_;  // By slot.
  Mismatch mismatch_;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_PATTERNS_INTERNAL_MATCHER_H_
