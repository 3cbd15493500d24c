// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_INTERNAL_GRAPH_EDGES_H_
#define TFPLUG_INTERNAL_GRAPH_EDGES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"
#include "tfplug/internal/graph_memory.h"

namespace tfplug::internal {

inline constexpr uint32_t kNoNode = 0xffffffff;
inline constexpr int32_t kControlPort = -1;

// An input as a node writes it: "name", "name:port" or "^name". As core reads
// it: digits after the last colon come first, so that "^a:0" is an output of a
// node called "^a"; ports wrap around at 2^32.
struct Reference {
  absl::string_view name;
  int32_t port;
};
inline Reference ParseReference(absl::string_view text) {
  size_t at = text.size();
  while (at > 1 && text[at - 1] >= '0' && text[at - 1] <= '9') --at;
  if (at > 1 && at < text.size() && text[at - 1] == ':') {
    uint32_t port = 0, unit = 1;
    for (size_t i = text.size(); i > at; --i) {
      port += static_cast<uint32_t>(text[i - 1] - '0') * unit;
      unit *= 10;
    }
    // Core asks so whether there were digits; 10^32 is 0 for it.
    if (unit > 1) {
      return {text.substr(0, at - 1), static_cast<int32_t>(port)};
    }
  }
  if (!text.empty() && text[0] == '^') return {text.substr(1), kControlPort};
  return {text, 0};
}

// Where an input comes from. Edges have numbers, which stay what they are: a
// changed input is a new edge, and the old one's source becomes kNoNode.
struct Edge {
  uint32_t source;
  int32_t port;
};

// A place where a node is used. It holds while the edge's source is that node.
struct UseEntry {
  uint32_t user;
  uint32_t edge;
};

// The uses of each node: those of the graph as it was, sorted by source in one
// array, and those made since in chains.
class UseLists {
 public:
  bool empty() const { return first_.empty(); }
  void Clear() {
    first_.clear();
    entries_.clear();
    counts_.clear();
    added_.clear();
    heads_.clear();
  }

  // Of nodes whose inputs are edges [first_edge[n], first_edge[n + 1]).
  void Build(const Array<uint32_t>& first_edge, uint32_t num_nodes,
             const Array<Edge>& edges) {
    counts_.Assign(num_nodes, 0);
    const uint32_t num_edges = first_edge[num_nodes];
    for (uint32_t e = 0; e < num_edges; ++e) {
      if (edges[e].source != kNoNode) ++counts_[edges[e].source];
    }
    first_.Resize(num_nodes + 1);
    uint32_t sum = 0;
    for (uint32_t n = 0; n < num_nodes; ++n) {
      first_[n] = sum;
      sum += counts_[n];
    }
    first_[num_nodes] = sum;
    entries_.Resize(sum);
    for (uint32_t n = 0; n < num_nodes; ++n) {
      for (uint32_t e = first_edge[n]; e < first_edge[n + 1]; ++e) {
        const uint32_t source = edges[e].source;
        if (source != kNoNode) entries_[first_[source]++] = {n, e};
      }
    }
    // Each begin has become the next one's.
    for (uint32_t n = num_nodes; n > 0; --n) first_[n] = first_[n - 1];
    first_[0] = 0;
  }

  // How many edges come from `node`.
  uint32_t count(uint32_t node) const { return counts_[node]; }

  void AddNode() { counts_.PushBack(0); }
  void Add(uint32_t source, UseEntry entry) {
    ++counts_[source];
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
  // The edge's source is no longer `source`.
  void Remove(uint32_t source) { --counts_[source]; }

  // A place in the list of a node's uses, which may grow meanwhile.
  class Cursor {
   public:
    Cursor(const UseLists& lists, uint32_t node) : lists_(&lists), node_(node) {
      if (node + 1 < lists.first_.size()) {
        at_ = lists.first_[node];
        end_ = lists.first_[node + 1];
      }
    }
    // The next entry, which may no longer hold; null at the end.
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
  static constexpr uint32_t kNoLink = 0xffffffff;
  struct Link {
    UseEntry entry;
    uint32_t next;
  };
  struct Chain {
    uint32_t first;
    uint32_t last;
  };

  Array<uint32_t> first_;
  Array<UseEntry> entries_;
  Array<uint32_t> counts_;
  Array<Link> added_;
  Array<Chain> heads_;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_INTERNAL_GRAPH_EDGES_H_
