// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_USE_LISTS_H_
#define TFPLUG_GRAPH_INTERNAL_USE_LISTS_H_

#include <cstdint>

#include "absl/base/optimization.h"
#include "tfplug/graph/internal/graph_index.h"
#include "tfplug/graph/internal/memory.h"

#pragma GCC visibility push(hidden)

namespace tfplug::graph_internal {

// The user of an edge that was added to the parsed ones, and the edge's slot in
// the user's InputList.
struct AddedEdge {
  uint32_t user;
  uint32_t slot;
};

// A use of a node, valid while the edge's source is that node.
struct UseEntry {
  uint32_t user;
  uint32_t edge;
};

// The uses of each node. One array, sorted by source, holds the uses in the
// parsed graph; a linked list for each node holds the added ones. Most edits
// need only the counts, which are built earlier.
class UseLists {
 public:
  bool has_counts() const { return has_counts_; }
  bool has_lists() const { return !first_.empty(); }
  void Clear() {
    has_counts_ = false;
    first_.clear();
    entries_.clear();
    counts_.clear();
    added_.clear();
    heads_.clear();
  }

  // Counts the uses of `size` nodes by the parsed edges, the first `num_edges`.
  void BuildCounts(uint32_t size, uint32_t num_edges,
                   const Array<Edge>& edges) {
    Count(size, num_edges, edges, counts_);
    has_counts_ = true;
  }
  // Builds the lists of `size` nodes, of which the first `num_parsed` have the
  // inputs in `records`. Leaves out edges that have ended.
  void BuildLists(const Array<NodeRecord>& records, uint32_t size,
                  uint32_t num_parsed, const Array<Edge>& edges,
                  const Array<AddedEdge>& added) {
    const uint32_t num_edges = records[num_parsed].first_edge;
    Count(size, num_edges, edges, first_);
    // first_[n] is the end of node n's entries here; the loop below lowers it
    // to their start.
    uint32_t sum = 0;
    for (uint32_t n = 0; n < size; ++n) first_[n] = sum += first_[n];
    first_.PushBack(sum);
    entries_.Resize(sum);
    for (uint32_t n = num_parsed; n-- > 0;) {
      const uint32_t begin = records[n].first_edge;
      for (uint32_t e = records[n + 1].first_edge; e-- > begin;) {
        const uint32_t source = edges[e].source;
        if (ABSL_PREDICT_TRUE(source != kNoNode)) {
          entries_[--first_[source]] = {n, e};
        }
      }
    }
    for (uint32_t i = 0; i < added.size(); ++i) {
      const uint32_t source = edges[num_edges + i].source;
      if (source != kNoNode) Append(source, {added[i].user, num_edges + i});
    }
  }

  // Prefetches the memory that count() and Add() read.
  void Prefetch(uint32_t node) const {
    if (node < counts_.size()) graph_internal::Prefetch(&counts_[node]);
    if (node < heads_.size()) graph_internal::Prefetch(&heads_[node]);
  }
  // Returns the number of edges from `node`.
  uint32_t count(uint32_t node) const { return counts_[node]; }

  void AddNode() { counts_.PushBack(0); }
  void Add(uint32_t source, UseEntry entry) {
    ++counts_[source];
    if (ABSL_PREDICT_FALSE(has_lists())) Append(source, entry);
  }
  // Stops counting an edge whose source is no longer `source`.
  void Remove(uint32_t source) { --counts_[source]; }

  // Drops the added uses of a node whose edges have ended, except for the last
  // one, so that a Cursor stays valid.
  template <class F>
  void Prune(uint32_t node, const F& has_ended) {
    if (node >= heads_.size()) return;
    uint32_t* link = &heads_[node].first;
    while (*link != kNoLink && *link != heads_[node].last) {
      Link& use = added_[*link];
      if (has_ended(use.entry)) {
        *link = use.next;
      } else {
        link = &use.next;
      }
    }
  }

  // The uses in the parsed graph, for a range-based for loop.
  struct Entries {
    const UseEntry* first;
    const UseEntry* last;
    const UseEntry* begin() const { return first; }
    const UseEntry* end() const { return last; }
  };
  Entries parsed(uint32_t node) const {
    return {entries_.data() + first_[node], entries_.data() + first_[node + 1]};
  }
  // Calls f(entry) for each entry, including entries whose edge has ended.
  template <class F>
  void ForEach(uint32_t node, const F& f) const {
    if (node + 1 < first_.size()) {
      const UseEntry* const end = entries_.data() + first_[node + 1];
      for (const UseEntry* use = entries_.data() + first_[node]; use < end;
           ++use) {
        f(*use);
      }
    }
    if (ABSL_PREDICT_TRUE(node >= heads_.size())) return;
    for (uint32_t link = heads_[node].first; link != kNoLink;
         link = added_[link].next) {
      f(added_[link].entry);
    }
  }

  // A position in the list of a node's uses. The list may grow during the
  // iteration.
  class Cursor {
   public:
    Cursor(const UseLists& lists, uint32_t node) : lists_(&lists), node_(node) {
      if (node + 1 < lists.first_.size()) {
        at_ = lists.first_[node];
        end_ = lists.first_[node + 1];
      }
    }
    // Returns the next entry, whose edge may have ended; null at the end. The
    // pointer is valid until the next edit.
    const UseEntry* Next() {
      if (at_ < end_) return &lists_->entries_[at_++];
      const uint32_t link = link_ != kNoLink ? lists_->added_[link_].next
                            : node_ < lists_->heads_.size()
                                ? lists_->heads_[node_].first
                                : kNoLink;
      if (link == kNoLink) return nullptr;
      link_ = link;
      return &lists_->added_[link].entry;
    }

   private:
    const UseLists* lists_;
    uint32_t node_;
    uint32_t at_ = 0;
    uint32_t end_ = 0;
    uint32_t link_ = kNoLink;
  };

 private:
  void Append(uint32_t source, UseEntry entry) {
    const uint32_t link = static_cast<uint32_t>(added_.size());
    added_.PushBack({entry, kNoLink});
    if (heads_.size() < counts_.size()) {
      heads_.Resize(counts_.size(), Chain{kNoLink, kNoLink});
    }
    Chain& chain = heads_[source];
    if (chain.first == kNoLink) {
      chain.first = link;
    } else {
      added_[chain.last].next = link;
    }
    chain.last = link;
  }
  static void Count(uint32_t size, uint32_t num_edges, const Array<Edge>& edges,
                    Array<uint32_t>& counts) {
    counts.Reserve(size + 1);
    counts.Assign(size, 0);
    for (uint32_t e = 0; e < num_edges; ++e) {
      const uint32_t source = edges[e].source;
      if (ABSL_PREDICT_TRUE(source != kNoNode)) ++counts[source];
    }
  }

  static constexpr uint32_t kNoLink = 0xffffffff;
  struct Link {
    UseEntry entry;
    uint32_t next;
  };
  struct Chain {
    uint32_t first;
    uint32_t last;
  };

  bool has_counts_ = false;
  Array<uint32_t> counts_;
  Array<uint32_t> first_;
  Array<UseEntry> entries_;
  Array<Link> added_;
  Array<Chain> heads_;
};

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_USE_LISTS_H_
