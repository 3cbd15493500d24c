// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_DEPENDENCY_H_
#define TFPLUG_PATTERNS_INTERNAL_DEPENDENCY_H_

#include <cstdint>
#include <vector>

#include "tfplug/base/internal/access.h"
#include "tfplug/graph/node.h"
#include "tfplug/graph/ranges.h"

#pragma GCC visibility push(hidden)

namespace tfplug::patterns_internal {

// Searches for a path between two sets of nodes, from both ends, so that it
// takes time linear in the smaller one of: the nodes that depend on the first
// set, and the nodes on which the second set depends. Ignores the edge that
// closes a loop.
class DependencySearch {
 public:
  void Clear() {
    from_.clear();
    to_.clear();
  }
  void AddFrom(const Node& node) { from_.push_back(node); }
  void AddTo(const Node& node) { to_.push_back(node); }

  // Returns whether a node of the second set depends on, or is, one of the
  // first.
  bool Run() {
    meeting_ = Node();
    if (from_.empty() || to_.empty()) return false;
    marks_.assign(internal::Access::state(from_[0])->size(), 0);
    bool found = false;
    const auto mark = [&](std::vector<Node>& list, const Node& node,
                          uint8_t side) {
      uint8_t& marked = marks_[node.id()];
      if ((marked & ~side) != 0) {
        found = true;
        meeting_ = node;
      }
      if ((marked & side) != 0) return;
      marked = static_cast<uint8_t>(marked | side);
      list.push_back(node);
    };
    std::vector<Node> from, to;
    for (const Node& node : from_) mark(from, node, kFrom);
    for (const Node& node : to_) mark(to, node, kTo);
    while (!found && !from.empty() && !to.empty()) {
      const Node user = from.back();
      from.pop_back();
      if (!EndsLoop(user)) {
        for (const Use use : user.uses()) mark(from, use.node, kFrom);
      }
      const Node source = to.back();
      to.pop_back();
      for (const Input input : source.inputs()) {
        Visit(input.from.node, to, mark);
      }
      for (const Node control : source.controls()) Visit(control, to, mark);
    }
    return found;
  }

  // Returns a node on the path that Run() found.
  Node meeting() const { return meeting_; }

 private:
  static constexpr uint8_t kFrom = 1, kTo = 2;

  static bool EndsLoop(const Node& node) {
    return node.op() == "NextIteration" || node.op() == "RefNextIteration";
  }
  template <class Mark>
  static void Visit(const Node& source, std::vector<Node>& to,
                    const Mark& mark) {
    if (source && !EndsLoop(source)) mark(to, source, kTo);
  }

  std::vector<Node> from_, to_;
  std::vector<uint8_t> marks_;  // By node.
  Node meeting_;
};

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_DEPENDENCY_H_
