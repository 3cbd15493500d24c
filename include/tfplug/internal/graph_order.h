// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_INTERNAL_GRAPH_ORDER_H_
#define TFPLUG_INTERNAL_GRAPH_ORDER_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tfplug/internal/graph_core.h"
#include "tfplug/internal/graph_memory.h"

namespace tfplug::internal {

// Puts a graph's nodes in an order in which each comes after those that it
// takes inputs from. Loops of while are closed by an edge from NextIteration to
// Merge, which does not count.
class TopologicalSort {
 public:
  explicit TopologicalSort(GraphCore& graph) : graph_(graph) {
    OpTable& ops = graph.op_table();
    merge_ = {ops.Find("Merge"), ops.Find("RefMerge")};
    next_ = {ops.Find("NextIteration"), ops.Find("RefNextIteration")};
  }

  // INVALID_ARGUMENT that names the nodes of a cycle if there is one.
  absl::Status Run(Array<uint32_t>& order) {
    order.clear();
    UseLists& uses = graph_.uses();
    const uint32_t size = graph_.size();
    waiting_.Assign(size, 0);
    bool sorted = true;
    for (uint32_t n = 0; n < size; ++n) {
      if (!graph_.live(n)) continue;
      for (uint32_t i = 0, count = graph_.num_edges(n); i < count; ++i) {
        const uint32_t source = graph_.edge(graph_.edge_number(n, i)).source;
        if (source == kNoNode || ClosesLoop(source, n)) continue;
        ++waiting_[n];
        sorted = sorted && source < n;
      }
    }
    for (uint32_t n = 0; n < size; ++n) {
      if (graph_.live(n) && (sorted || waiting_[n] == 0)) order.PushBack(n);
    }
    if (sorted) return absl::OkStatus();
    for (uint32_t i = 0; i < order.size(); ++i) {
      const uint32_t n = order[i];
      UseLists::Cursor cursor(uses, n);
      while (const UseEntry* use = cursor.Next()) {
        if (graph_.edge(use->edge).source != n || ClosesLoop(n, use->user)) {
          continue;
        }
        if (--waiting_[use->user] == 0) order.PushBack(use->user);
      }
    }
    if (order.size() == graph_.num_live()) return absl::OkStatus();
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

  // Each node that still waits, waits for another one that does.
  uint32_t WaitsFor(uint32_t n) const {
    for (uint32_t i = 0, count = graph_.num_edges(n); i < count; ++i) {
      const uint32_t source = graph_.edge(graph_.edge_number(n, i)).source;
      if (source != kNoNode && waiting_[source] > 0 && !ClosesLoop(source, n)) {
        return source;
      }
    }
    return kNoNode;
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

  GraphCore& graph_;
  OpPair merge_, next_;
  Array<uint32_t> waiting_;  // How many inputs have no place in the order yet.
};

}  // namespace tfplug::internal

#endif  // TFPLUG_INTERNAL_GRAPH_ORDER_H_
