// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_ORDER_H_
#define TFPLUG_GRAPH_INTERNAL_ORDER_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tfplug/graph/internal/graph_state.h"
#include "tfplug/graph/internal/memory.h"

namespace tfplug::internal {

// Puts a graph's nodes in an order in which each comes after those that it
// takes inputs from. Loops of while are closed by an edge from NextIteration to
// Merge, which does not count.
class TopologicalSort {
 public:
  explicit TopologicalSort(GraphState& graph)
      : graph_(graph), waiting_(graph.waiting_), order_(graph.order_) {
    OpTable& ops = graph.op_table();
    merge_ = {ops.Find("Merge"), ops.Find("RefMerge")};
    next_ = {ops.Find("NextIteration"), ops.Find("RefNextIteration")};
  }

  // The nodes in order, until the next Run().
  const Array<uint32_t>& order() const { return order_; }

  // INVALID_ARGUMENT that names the nodes of a cycle if there is one.
  absl::Status Run() {
    graph_.uses();
    const uint32_t size = graph_.size();
    order_.clear();
    order_.Reserve(size);
    if (IsSorted()) {
      for (uint32_t n = 0; n < size; ++n) {
        if (graph_.live(n)) order_.PushBack(n);
      }
      return absl::OkStatus();
    }
    waiting_.Resize(size);
    uint32_t* next = order_.data();
    for (uint32_t n = 0; n < size; ++n) {
      waiting_[n] = 0;
      if (!graph_.live(n)) continue;
      graph_.ForEachSource(n, [&](uint32_t) { ++waiting_[n]; });
      if (ABSL_PREDICT_FALSE(merge_.Has(graph_.op(n)))) {
        graph_.ForEachSource(n, [&](uint32_t source) {
          if (next_.Has(graph_.op(source))) --waiting_[n];
        });
      }
      if (waiting_[n] == 0) *next++ = n;
    }
    for (const uint32_t* done = order_.data(); done < next; ++done) {
      const uint32_t n = *done;
      const bool loops = next_.Has(graph_.op(n));
      graph_.ForEachUser(n, [&](uint32_t user) {
        if (ABSL_PREDICT_FALSE(loops) && merge_.Has(graph_.op(user))) return;
        if (--waiting_[user] == 0) *next++ = user;
      });
    }
    order_.Resize(static_cast<size_t>(next - order_.data()));
    if (order_.size() == graph_.num_live()) return absl::OkStatus();
    return absl::InvalidArgumentError(DescribeCycle());
  }

 private:
  struct OpPair {
    uint32_t op, ref_op;
    bool Has(uint32_t op_number) const {
      return op_number == op || op_number == ref_op;
    }
  };
  bool ClosesLoop(uint32_t from, uint32_t to) const {
    return merge_.Has(graph_.op(to)) && next_.Has(graph_.op(from));
  }

  // Whether the nodes are in order as they are.
  bool IsSorted() const {
    bool sorted = true;
    for (uint32_t n = 0; n < graph_.size() && sorted; ++n) {
      if (!graph_.live(n)) continue;
      graph_.ForEachSource(n, [&](uint32_t source) {
        if (ABSL_PREDICT_FALSE(source >= n) && !ClosesLoop(source, n)) {
          sorted = false;
        }
      });
    }
    return sorted;
  }

  // Each node that still waits, waits for another one that does.
  uint32_t WaitsFor(uint32_t n) const {
    uint32_t other = kNoNode;
    graph_.ForEachSource(n, [&](uint32_t source) {
      if (waiting_[source] > 0 && !ClosesLoop(source, n)) other = source;
    });
    return other;
  }
  std::string DescribeCycle() const {
    uint32_t n = 0;
    while (waiting_[n] == 0) ++n;
    // After as many steps as there are nodes, it is one of a cycle.
    for (uint32_t i = 0; i < graph_.size(); ++i) n = WaitsFor(n);
    std::string text = absl::StrCat("the graph has a cycle: '", graph_.name(n));
    const uint32_t first = n;
    for (int shown = 1; (n = WaitsFor(n)) != first; ++shown) {
      if (shown == 10) {
        text += "' <- ...";
        break;
      }
      absl::StrAppend(&text, "' <- '", graph_.name(n));
    }
    return absl::StrCat(text, "' <- '", graph_.name(first), "'");
  }

  GraphState& graph_;
  OpPair merge_, next_;
  Array<uint32_t>& waiting_;  // How many inputs have no place in the order yet.
  Array<uint32_t>& order_;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_GRAPH_INTERNAL_ORDER_H_
