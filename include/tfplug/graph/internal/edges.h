// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_EDGES_H_
#define TFPLUG_GRAPH_INTERNAL_EDGES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"
#include "tfplug/graph/internal/hash.h"
#include "tfplug/graph/internal/index.h"
#include "tfplug/graph/internal/memory.h"

namespace tfplug::internal {

inline constexpr int32_t kControlPort = -1;

// An input as a node writes it: "name", "name:port" or "^name". As core reads
// it: digits after the last colon come first, so that "^a:0" is an output of a
// node called "^a"; ports wrap around at 2^32.
struct Reference {
  absl::string_view name;
  int32_t port;
};
inline Reference ParseNumberedReference(absl::string_view text) {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const char* digits = end;
  while (digits - begin > 1 && digits[-1] >= '0' && digits[-1] <= '9') --digits;
  if (digits - begin > 1 && digits[-1] == ':') {
    uint32_t port = 0, unit = 1;
    for (const char* digit = end; digit-- > digits; unit *= 10) {
      port += static_cast<uint32_t>(*digit - '0') * unit;
    }
    // By the unit, core tells whether there were digits; 10^32 is 0 for it.
    if (unit > 1) {
      return {absl::string_view(begin, static_cast<size_t>(digits - 1 - begin)),
              static_cast<int32_t>(port)};
    }
  }
  if (*begin == '^') {
    return {absl::string_view(begin + 1, text.size() - 1), kControlPort};
  }
  return {text, 0};
}
inline Reference ParseReference(absl::string_view text) {
  // Nearly all have no colon among their last eight characters, and something
  // else than a digit in front of these: they have no port.
  constexpr uint64_t kOnes = 0x0101010101010101;
  if (ABSL_PREDICT_FALSE(text.empty())) return {text, 0};
  if (ABSL_PREDICT_FALSE(text.size() < 8)) return ParseNumberedReference(text);
  const char* const last = text.data() + text.size() - 8;
  const uint64_t colons = LoadWord<uint64_t>(last) ^ kOnes * ':';
  const bool has_colon = ((colons - kOnes) & ~colons & kOnes << 7) != 0;
  if (has_colon || (*last >= '0' && *last <= '9')) {
    return ParseNumberedReference(text);
  }
  if (text.data()[0] == '^') {
    return {absl::string_view(text.data() + 1, text.size() - 1), kControlPort};
  }
  return {text, 0};
}

// In the body of a function: "argument", "name:output:number" or "^name". What
// is behind the first colon is a port by its text, whose number is that in
// `ports` plus one.
inline Reference ParseBodyReference(absl::string_view text, OpTable& ports) {
  if (!text.empty() && text.data()[0] == '^') {
    return {absl::string_view(text.data() + 1, text.size() - 1), kControlPort};
  }
  const size_t colon = text.find(':');
  if (colon == text.npos) return {text, 0};
  const uint32_t port = ports.Number(text.substr(colon + 1));
  return {text.substr(0, colon), static_cast<int32_t>(port + 1)};
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

  // Of `size` nodes, of which the first `num_parsed` have the inputs that
  // `records` says; the others have none.
  void Build(const Array<NodeRecord>& records, uint32_t size,
             uint32_t num_parsed, const Array<Edge>& edges) {
    const uint32_t num_edges = records[num_parsed].first_edge;
    counts_.Assign(size, 0);
    for (uint32_t e = 0; e < num_edges; ++e) {
      const uint32_t source = edges[e].source;
      if (ABSL_PREDICT_TRUE(source != kNoNode)) ++counts_[source];
    }
    // Each node's end, which goes down to its begin.
    first_.Resize(size + 1);
    uint32_t sum = 0;
    for (uint32_t n = 0; n < size; ++n) first_[n] = sum += counts_[n];
    first_[size] = sum;
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
  }

  // What count() and Add() need.
  void Prefetch(uint32_t node) const {
    if (node < counts_.size()) internal::Prefetch(&counts_[node]);
    if (node < heads_.size()) internal::Prefetch(&heads_[node]);
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

  // Calls f(entry) for all, also those that no longer hold.
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

  // A place in the list of a node's uses, which may grow meanwhile.
  class Cursor {
   public:
    Cursor(const UseLists& lists, uint32_t node) : lists_(&lists), node_(node) {
      if (node + 1 < lists.first_.size()) {
        at_ = lists.first_[node];
        end_ = lists.first_[node + 1];
      }
    }
    // The next entry, which may no longer hold; null at the end, and until the
    // next edit.
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

#endif  // TFPLUG_GRAPH_INTERNAL_EDGES_H_
