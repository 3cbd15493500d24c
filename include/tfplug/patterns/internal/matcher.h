// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_MATCHER_H_
#define TFPLUG_PATTERNS_INTERNAL_MATCHER_H_

#include <cstdint>
#include <vector>

#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/node.h"
#include "tfplug/graph/ranges.h"
#include "tfplug/patterns/internal/attributes.h"
#include "tfplug/patterns/internal/match.h"
#include "tfplug/patterns/internal/mismatch.h"
#include "tfplug/patterns/internal/plan.h"
#include "tfplug/patterns/internal/replacement.h"
#include "tfplug/patterns/internal/surroundings.h"
#include "tfplug/patterns/internal/variant.h"

#pragma GCC visibility push(hidden)

namespace tfplug::patterns_internal {

// Matches variants of a rule's pattern with nodes, and plans the replacement.
// The match and its plan are valid until the next call of Match(). Cheap checks
// come first: ops, then attributes, the surrounding graph, and the plan.
class PatternMatcher {
 public:
  // `graph_ops`: see PatternTable::FindOps.
  PatternMatcher(const PassContext& context,
                 const std::vector<uint32_t>& graph_ops)
      : graph_ops_(graph_ops),
        context_(context),
        attributes_(match_, context, mismatch_),
        plan_(context) {}
  PatternMatcher(const PatternMatcher&) = delete;
  PatternMatcher& operator=(const PatternMatcher&) = delete;

  // Returns whether `rule` can replace a match of `variant`, one of its
  // variants, with `root` as the root; otherwise, mismatch() has the reason.
  bool Match(const RuleData& rule, const PatternVariant& variant,
             const Node& root) {
    rule_ = &rule;
    num_rejected_ = 0;
    const PatternElement& element = *variant.slots[0];
    if (!HasOp(variant, 0, root)) {
      return Fail(Reason::kRootOp, 0, root, {}, 0, &element);
    }
    if (!CheckInputCount(element, root, 1)) return false;
    match_.Clear(variant);
    match_.output(0) = Output{root, variant.root_port};
    return MatchFrom(variant, 0, 0, 2);
  }

  const PatternMatch& match() const { return match_; }
  const PatternPlan& plan() const { return plan_; }
  const Mismatch& mismatch() const { return mismatch_; }

 private:
  using Reason = Mismatch::Reason;
  using StepKind = PatternStep::Kind;

  // The number of candidates of a kUse for which a plan is made. A condition
  // and the check for cycles may take long.
  static constexpr int kMaxRejected = 64;

  bool Fail(Reason reason, int progress, const Node& node,
            const Node& other = Node(), int index = 0,
            const PatternElement* element = nullptr) {
    mismatch_.reason = reason;
    mismatch_.progress = progress;
    mismatch_.node = node;
    mismatch_.other = other;
    mismatch_.index = index;
    mismatch_.element = element;
    return false;
  }

  bool HasOp(const PatternVariant& variant, size_t slot,
             const Node& node) const {
    const uint32_t node_op = node.op_id();
    for (uint32_t op : variant.ops[slot]) {
      if (graph_ops_[op] == node_op) return true;
    }
    return false;
  }
  bool CheckInputCount(const PatternElement& element, const Node& node,
                       int progress) {
    if (!element.has_inputs) return true;
    const int count = node.num_inputs();
    const int wanted = static_cast<int>(element.inputs.size());
    if (count == wanted) return true;
    for (const PatternOutput& input : element.inputs) {
      if (input.element->kind == PatternElement::Kind::kEach &&
          count >= wanted - 1) {
        return true;
      }
    }
    return Fail(Reason::kInputCount, progress, node, {}, count, &element);
  }

  // Takes the steps from `first` on and checks the result. The slots of
  // `variant`, which may be the body of an Each or Repeated, begin at index
  // `base`.
  bool MatchFrom(const PatternVariant& variant, size_t base, size_t first,
                 int progress) {
    for (size_t i = first; i < variant.steps.size(); ++i) {
      const PatternStep& step = variant.steps[i];
      const int at = progress + static_cast<int>(i);
      if (step.kind == StepKind::kUse) return MatchUses(step, i, progress);
      if (step.starts_swap) return MatchSwapped(variant, base, i, progress);
      if (!Take(variant, base, step, at)) return false;
    }
    return CheckAll(variant, base,
                    progress + static_cast<int>(variant.steps.size()));
  }
  bool CheckAll(const PatternVariant& variant, size_t base, int progress) {
    if (base != 0) return attributes_.Check(variant, base, progress);
    return CheckRepetitions(progress) &&
           attributes_.Check(variant, 0, progress) &&
           PatternSurroundings(match_, context_, mismatch_).Check() && Plan();
  }
  bool Plan() {
    if (plan_.Prepare(*rule_, match_)) return true;
    mismatch_ = plan_.mismatch();
    ++num_rejected_;
    return false;
  }
  // Tries both orders of the inputs of the commutative node whose first input
  // is in step `i`.
  bool MatchSwapped(const PatternVariant& variant, size_t base, size_t i,
                    int progress) {
    const PatternStep& step = variant.steps[i];
    std::vector<char>& swapped = base == 0 ? swapped_ : body_swapped_;
    const size_t swap = Index(step.swap);
    if (swapped.size() <= swap) swapped.resize(swap + 1);
    const PatternMatch::Size size = match_.GetSize();
    Mismatch best;
    for (const char order : {0, 1}) {
      swapped[swap] = order;
      if (Take(variant, base, step, progress + static_cast<int>(i)) &&
          MatchFrom(variant, base, i + 1, progress)) {
        return true;
      }
      match_.Shrink(size);
      if (order == 0) {
        best.progress = mismatch_.progress;
        if (best.progress > progress + static_cast<int>(i)) best = mismatch_;
      }
    }
    if (best.progress > mismatch_.progress) mismatch_ = best;
    return false;
  }
  // Tries the users of a value, in their order, until the rest matches.
  bool MatchUses(const PatternStep& step, size_t i, int progress) {
    const PatternVariant& variant = match_.variant();
    const auto slot = Index(step.slot);
    const Output from = match_.output(Index(step.parent));
    const int port = match_.IsNode(Index(step.parent)) ? step.port : from.port;
    const PatternElement& element = *variant.slots[slot];
    const PatternMatch::Size size = match_.GetSize();
    const int at = progress + static_cast<int>(i);
    Mismatch best;
    best.progress = -1;
    for (const Use use : from.node.uses(port)) {
      const Node& node = use.node;
      bool is_other = use.input == step.input && HasOp(variant, slot, node);
      for (size_t s = 0; s < slot; ++s) {
        is_other = is_other && match_.output(s).node != node;
      }
      if (!is_other) continue;
      match_.output(slot) = Output{node, 0};
      if (CheckInputCount(element, node, at) &&
          MatchFrom(variant, 0, i + 1, progress)) {
        return true;
      }
      if (mismatch_.progress > best.progress) best = mismatch_;
      match_.Shrink(size);
      if (num_rejected_ >= kMaxRejected) break;
    }
    if (best.progress >= 0) {
      mismatch_ = best;
      return false;
    }
    return Fail(Reason::kNoUser, at, from.node, {}, port, &element);
  }
  // Checks that handles that are used both within an Each or Repeated and
  // elsewhere matched the same values.
  bool CheckRepetitions(int progress) {
    for (const PatternMatch::Repetition& repetition : match_.repetitions()) {
      const PatternVariant& body = *repetition.body;
      for (size_t i = 0; i < body.slots.size(); ++i) {
        if (body.outer_slots[i] < 0) continue;
        const Output& outer = match_.output(Index(body.outer_slots[i]));
        const Output& inner = match_.output(repetition.first + i);
        if (outer.node == inner.node &&
            (body.slots[i]->is_node() || outer.port == inner.port)) {
          continue;
        }
        return Fail(Reason::kOtherRepetition, progress, inner.node, outer.node,
                    0, body.slots[i]);
      }
    }
    return true;
  }
  // Takes one step of `variant`, whose slots begin at index `base`.
  bool Take(const PatternVariant& variant, size_t base, const PatternStep& step,
            int progress) {
    const Output parent = match_.output(base + Index(step.parent));
    if (step.kind == StepKind::kEach) {
      match_.output(base + Index(step.slot)) = Output();
      return MatchEach(variant, step, parent.node, progress);
    }
    int index = step.input;
    if (step.swap >= 0 &&
        (base == 0 ? swapped_ : body_swapped_)[Index(step.swap)] != 0) {
      index = 1 - index;
    }
    if (step.from_end) index = parent.node.num_inputs() - index;
    const Output output =
        step.kind == StepKind::kSame ? parent : parent.node.input(index);
    if (step.kind == StepKind::kRepeated) {
      match_.output(base + Index(step.slot)) =
          FollowChain(variant, step, output, progress);
      return true;
    }
    const size_t slot = Index(step.slot);
    const PatternElement& element = *variant.slots[slot];
    const bool is_node = element.is_node();
    if (step.is_new) {
      if (!output.node || (is_node && !HasOp(variant, slot, output.node))) {
        return Fail(Reason::kInputOp, progress, parent.node, output.node, index,
                    &element);
      }
      if (is_node && !CheckInputCount(element, output.node, progress)) {
        return false;
      }
      match_.output(base + slot) = output;
    } else {
      const Output& before = match_.output(base + slot);
      if (before.node != output.node ||
          (!is_node && before.port != output.port)) {
        return Fail(Reason::kOtherValue, progress, parent.node, output.node,
                    index, &element);
      }
    }
    if (is_node && output.port != step.port) {
      mismatch_.expected = step.port;
      return Fail(Reason::kPort, progress, parent.node, output.node, index);
    }
    return true;
  }

  bool MatchEach(const PatternVariant& variant, const PatternStep& step,
                 const Node& node, int progress) {
    const PatternElement* group = variant.slots[Index(step.slot)];
    const int end = node.num_inputs() - step.after;
    for (int i = step.input; i < end; ++i) {
      if (!MatchBody(group, *step.bodies, node.input(i), progress)) {
        // A mismatch of slot 0 has no parent to name.
        if (mismatch_.reason == Reason::kRootOp) {
          return Fail(Reason::kInputOp, progress, node, node.input(i).node, i,
                      mismatch_.element);
        }
        return false;
      }
    }
    return true;
  }
  // Matches the nodes of a chain. Returns the value before the first one.
  Output FollowChain(const PatternVariant& variant, const PatternStep& step,
                     Output end, int progress) {
    const PatternElement* group = variant.slots[Index(step.slot)];
    // The bound is reached only in a cycle.
    uint32_t left = end.node ? internal::Access::state(end.node)->size() : 0;
    for (; end.node && left > 0; --left) {
      const PatternVariant* body =
          MatchBody(group, *step.bodies, end, progress);
      if (body == nullptr) break;
      // A commutative node continues the chain in the other input.
      const bool is_swapped = body->num_swaps > 0 &&
                              body->slots[0]->is_commutative &&
                              body_swapped_[0] != 0;
      end = end.node.input(is_swapped ? 1 : 0);
    }
    return end;
  }

  // Adds a repetition in which slot 0 of a body is `output`. Returns the body
  // that matches, or null.
  const PatternVariant* MatchBody(const PatternElement* group,
                                  const std::vector<PatternVariant>& bodies,
                                  const Output& output, int progress) {
    for (const PatternVariant& body : bodies) {
      const PatternMatch::Size size = match_.GetSize();
      const size_t base = match_.Add(group, body).first;
      if (StartBody(body, base, output, progress) &&
          MatchFrom(body, base, 0, progress)) {
        return &body;
      }
      match_.Shrink(size);
    }
    return nullptr;
  }
  bool StartBody(const PatternVariant& body, size_t base, const Output& output,
                 int progress) {
    const PatternElement& element = *body.slots[0];
    match_.output(base) = output;
    if (!output.node) {
      return Fail(Reason::kRootOp, progress, output.node, {}, 0, &element);
    }
    if (!element.is_node()) return true;
    return output.port == body.root_port && HasOp(body, 0, output.node)
               ? CheckInputCount(element, output.node, progress)
               : Fail(Reason::kRootOp, progress, output.node, {}, 0, &element);
  }

  static size_t Index(int slot) { return static_cast<size_t>(slot); }

  const std::vector<uint32_t>& graph_ops_;
  const PassContext& context_;
  const RuleData* rule_ = nullptr;
  PatternMatch match_;
  Mismatch mismatch_;
  PatternAttributes attributes_;
  PatternPlan plan_;
  int num_rejected_ = 0;  // Matches for which there was no plan.
  // By PatternStep::swap: of the variant, and of the current body.
  std::vector<char> swapped_, body_swapped_;
};

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_MATCHER_H_
