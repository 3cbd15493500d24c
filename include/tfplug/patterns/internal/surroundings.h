// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_SURROUNDINGS_H_
#define TFPLUG_PATTERNS_INTERNAL_SURROUNDINGS_H_

#include <cstddef>

#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/node.h"
#include "tfplug/graph/ranges.h"
#include "tfplug/patterns/internal/match.h"
#include "tfplug/patterns/internal/mismatch.h"

#pragma GCC visibility push(hidden)

namespace tfplug::patterns_internal {

// Checks that the rest of the graph does not need the nodes of a match that a
// replacement consumes.
class PatternSurroundings {
 public:
  PatternSurroundings(PatternMatch& match, const PassContext& context,
                      Mismatch& mismatch)
      : match_(match), context_(context), mismatch_(mismatch) {}

  bool Check() {
    match_.Index();
    if (!CheckOverlap() || !CheckDevice() || !CheckRoot()) return false;
    for (size_t i = 1; i < match_.size(); ++i) {
      if (match_.IsConsumed(i) && !CheckInner(i)) return false;
      if (match_.IsNode(i) && !CheckNotFed(i)) return false;
    }
    return true;
  }

 private:
  using Reason = Mismatch::Reason;

  // Beyond the progress of any structure or attribute.
  static constexpr int kFar = 1 << 20;

  bool Fail(Reason reason, int progress, const Node& node,
            const Node& other = Node(), int index = 0) {
    mismatch_.reason = reason;
    mismatch_.progress = progress;
    mismatch_.node = node;
    mismatch_.other = other;
    mismatch_.index = index;
    return false;
  }

  // Checks that no node that is consumed matches two elements. Exception: an
  // Each may contain a node twice.
  bool CheckOverlap() {
    for (size_t i = 0; i < match_.size(); ++i) {
      const PatternElement* element = match_.element(i);
      if (element == nullptr || !element->is_node()) continue;
      const Node& node = match_.output(i).node;
      const bool is_consumed = element->is_consumed();
      Reason reason = Reason::kNone;
      match_.AnyOf(node, [&](size_t j) {
        const PatternElement* other = match_.element(j);
        if (j == i || !HasValue(other) || other == element) return false;
        if (other->is_node()) {
          if (is_consumed || other->is_consumed()) reason = Reason::kSameNode;
        } else if (is_consumed) {
          reason = Reason::kOperandConsumed;
        }
        return reason != Reason::kNone;
      });
      if (reason != Reason::kNone) return Fail(reason, kFar, node);
    }
    return true;
  }
  static bool HasValue(const PatternElement* element) {
    return element != nullptr &&
           (element->is_node() || element->kind == PatternElement::Kind::kAny);
  }

  // Checks the root's device. A node without a device (in a function that
  // TensorFlow has not placed yet) may be placed on any device.
  bool CheckDevice() {
    const Node root = match_.root();
    return root.device().empty() || context_.IsOnDevice(root.device()) ||
           Fail(Reason::kOtherDevice, kFar + 1, root);
  }

  // Checks that only replaced outputs of the root are used.
  bool CheckRoot() {
    const PatternElement& element = *match_.element(0);
    return !element.has_many_outputs || CheckOutputs(0, kFar + 1);
  }
  // Checks the used outputs of a node with several ones.
  bool CheckOutputs(size_t i, int progress) {
    const PatternVariant& variant = match_.variant();
    const Node& node = match_.output(i).node;
    for (const Use use : node.uses()) {
      if (use.is_control()) continue;
      const int port = use.node.input(use.input).port;
      if (!variant.IsResult(static_cast<int>(i), port) && !IsConsumed(use)) {
        return Fail(Reason::kOutputUsed, progress, node, {}, port);
      }
    }
    // TensorFlow does not report which output of a preserved node is fetched.
    return !context_.IsPreserved(node.name()) ||
           Fail(Reason::kOutputUsed, progress, node, {},
                variant.IsResult(static_cast<int>(i), 0) ? 1 : 0);
  }

  // Checks that nothing outside the match needs the node, except for its
  // replaced outputs.
  bool CheckInner(size_t i) {
    const Node& node = match_.output(i).node;
    const Node root = match_.root();
    if (node.device() != root.device()) {
      return Fail(Reason::kDevice, kFar + 2, node, root);
    }
    const PatternVariant& variant = match_.variant();
    const bool is_result =
        i < variant.slots.size() && variant.HasResult(static_cast<int>(i));
    if (is_result) {
      if (match_.element(i)->has_many_outputs) return CheckOutputs(i, kFar + 2);
      return true;
    }
    if (!IsUsedOnce(i)) {
      for (const Use use : node.uses()) {
        if (IsConsumed(use)) continue;
        return Fail(use.is_control() ? Reason::kControlUsed : Reason::kUsed,
                    kFar + 2, node, use.node);
      }
    }
    return !context_.IsPreserved(node.name()) ||
           Fail(Reason::kPreserved, kFar + 2, node);
  }
  // Checks that the replacement may depend on how the node computes its value.
  bool CheckNotFed(size_t i) {
    const Output& output = match_.output(i);
    if (!output) return true;
    const bool may_be_fed = match_.element(i)->has_many_outputs
                                ? context_.IsPreserved(output.node.name())
                                : context_.MayBeFed(output);
    return !may_be_fed || Fail(Reason::kFed, kFar + 2, output.node);
  }
  // Returns whether the node's only use is an input of a consumed node that was
  // matched shortly before it. Does not need the graph's lists of uses, which
  // take longer to build than most rules take to run.
  bool IsUsedOnce(size_t i) const {
    constexpr size_t kNear = 4;
    constexpr int kFewInputs = 8;
    const Node& node = match_.output(i).node;
    if (node.num_uses() != 1) return false;
    for (size_t j = i; j-- > (i > kNear ? i - kNear : 0);) {
      if (j > 0 && !match_.IsConsumed(j)) continue;
      const Node& user = match_.output(j).node;
      if (!user || user.num_inputs() > kFewInputs) continue;
      for (const Input input : user.inputs()) {
        if (input.from.node == node) return true;
      }
    }
    return false;
  }
  bool IsConsumed(const Use& use) const {
    return match_.AnyOf(
        use.node, [this](size_t i) { return i == 0 || match_.IsConsumed(i); });
  }

  PatternMatch& match_;
  const PassContext& context_;
  Mismatch& mismatch_;
};

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_SURROUNDINGS_H_
