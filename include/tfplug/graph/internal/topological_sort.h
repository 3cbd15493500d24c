// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_TOPOLOGICAL_SORT_H_
#define TFPLUG_GRAPH_INTERNAL_TOPOLOGICAL_SORT_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tfplug/graph/internal/graph_state.h"
#include "tfplug/graph/internal/memory.h"

#pragma GCC visibility push(hidden)

namespace tfplug::graph_internal {

// Sorts a graph's nodes so that each follows the sources of its inputs. The
// edge from NextIteration to Merge, which closes a while loop, is ignored.
class TopologicalSort {
 public:
  explicit TopologicalSort(GraphState& state)
      : state_(state), waiting_(state.waiting_), order_(state.order_) {
    OpTable& ops = state.op_table();
    merge_ = {ops.Find("Merge"), ops.Find("RefMerge")};
    next_ = {ops.Find("NextIteration"), ops.Find("RefNextIteration")};
  }

  // Returns the sorted nodes. Valid until the next Run().
  const Array<uint32_t>& order() const { return order_; }

  // Sorts the nodes. INVALID_ARGUMENT, naming the nodes, if there is a cycle.
  absl::Status Run() {
    state_.EnsureEdges();
    const uint32_t size = state_.size();
    order_.clear();
    order_.Reserve(size + 1);  // SortPlain() may write one more.
    if (IsSorted()) {
      uint32_t* next = order_.data();
      for (uint32_t n = 0; n < size; ++n) {
        *next = n;
        next += state_.live(n) ? 1 : 0;
      }
      order_.Resize(state_.num_live());
      return absl::OkStatus();
    }
    state_.EnsureUses();
    waiting_.Resize(size);
    uint32_t* const next = state_.is_plain() ? SortPlain() : SortEdited();
    order_.Resize(static_cast<size_t>(next - order_.data()));
    if (order_.size() == state_.num_live()) return absl::OkStatus();
    return absl::InvalidArgumentError(DescribeCycle());
  }

 private:
  // Each fills waiting_ and order_, and returns the end of the sorted nodes.
  uint32_t* SortEdited() {
    const uint32_t size = state_.size();
    uint32_t* next = order_.data();
    for (uint32_t n = 0; n < size; ++n) {
      waiting_[n] = 0;
      if (!state_.live(n)) continue;
      state_.ForEachSource(n, [&](uint32_t) { ++waiting_[n]; });
      waiting_[n] -= CountLoops(n);
      if (waiting_[n] == 0) *next++ = n;
    }
    for (const uint32_t* done = order_.data(); done < next; ++done) {
      const uint32_t n = *done;
      const bool loops = next_.Has(state_.op(n));
      state_.ForEachUser(n, [&](uint32_t user) {
        if (ABSL_PREDICT_FALSE(loops) && merge_.Has(state_.op(user))) return;
        if (--waiting_[user] == 0) *next++ = user;
      });
    }
    return next;
  }
  // Does the same for a graph in which each edge of `records` is in use.
  uint32_t* SortPlain() {
    const uint32_t size = state_.size();
    uint32_t* const waiting = waiting_.data();
    uint32_t* next = order_.data();
    for (uint32_t n = 0; n < size; ++n) {
      waiting[n] = state_.num_parsed_inputs(n);
      if (ABSL_PREDICT_FALSE(merge_.Has(state_.op(n)))) {
        waiting[n] -= CountLoops(n);
      }
      *next = n;
      next += waiting[n] == 0;
    }
    for (const uint32_t* done = order_.data(); done < next; ++done) {
      const bool loops = next_.Has(state_.op(*done));
      for (const UseEntry& use : state_.uses().parsed(*done)) {
        if (ABSL_PREDICT_FALSE(loops) && merge_.Has(state_.op(use.user))) {
          continue;
        }
        *next = use.user;
        next += --waiting[use.user] == 0;
      }
    }
    return next;
  }
  // Returns the number of edges to `n` that close a loop.
  uint32_t CountLoops(uint32_t n) const {
    uint32_t count = 0;
    if (ABSL_PREDICT_FALSE(merge_.Has(state_.op(n)))) {
      state_.ForEachSource(
          n, [&](uint32_t source) { count += next_.Has(state_.op(source)); });
    }
    return count;
  }

  struct OpPair {
    uint32_t op, ref_op;
    bool Has(uint32_t op_id) const { return op_id == op || op_id == ref_op; }
  };
  bool ClosesLoop(uint32_t from, uint32_t to) const {
    return merge_.Has(state_.op(to)) && next_.Has(state_.op(from));
  }

  // Returns whether the nodes are already sorted.
  bool IsSorted() const {
    bool sorted = true;
    for (uint32_t n = 0; n < state_.size() && sorted; ++n) {
      if (!state_.live(n)) continue;
      state_.ForEachSource(n, [&](uint32_t source) {
        if (ABSL_PREDICT_FALSE(source >= n) && !ClosesLoop(source, n)) {
          sorted = false;
        }
      });
    }
    return sorted;
  }

  // Returns an unsorted source of `n`; each unsorted node has one.
  uint32_t WaitsFor(uint32_t n) const {
    uint32_t other = kNoNode;
    state_.ForEachSource(n, [&](uint32_t source) {
      if (waiting_[source] > 0 && !ClosesLoop(source, n)) other = source;
    });
    return other;
  }
  std::string DescribeCycle() const {
    uint32_t n = 0;
    while (waiting_[n] == 0) ++n;
    // The first node that is visited twice is in a cycle.
    std::vector<bool> visited(state_.size());
    for (; !visited[n]; n = WaitsFor(n)) visited[n] = true;
    std::string text = absl::StrCat("the graph has a cycle: '", state_.name(n));
    const uint32_t first = n;
    for (int shown = 1; (n = WaitsFor(n)) != first; ++shown) {
      if (shown == 10) {
        text += "' <- ...";
        break;
      }
      absl::StrAppend(&text, "' <- '", state_.name(n));
    }
    return absl::StrCat(text, "' <- '", state_.name(first), "'");
  }

  GraphState& state_;
  OpPair merge_, next_;
  Array<uint32_t>& waiting_;  // By node: the number of unsorted sources.
  Array<uint32_t>& order_;
};

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_TOPOLOGICAL_SORT_H_
