// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_PREFETCH_H_
#define TFPLUG_GRAPH_INTERNAL_PREFETCH_H_

#include <algorithm>
#include <cstdint>

#include "absl/base/attributes.h"
#include "tfplug/graph/internal/graph_state.h"
#include "tfplug/graph/internal/op_table.h"

#pragma GCC visibility push(hidden)

// Loads the data that a pass reads and edits around a node before a loop
// reaches it, so that following inputs does not wait for memory. For loops over
// the nodes of a graph that exceeds the processor's caches.
namespace tfplug::graph_internal {

// Prefetches the data of one node and of nodes that it takes inputs from.
class NodePrefetch {
 public:
  explicit NodePrefetch(const GraphState* state) : state_(state) {}

 protected:
  // Follows the first inputs from `n`: prefetches the tables of a node's
  // sources, then the bytes and edges of the first of these, and so on. Each
  // step reads the memory that the previous ones prefetched.
  void Step(uint32_t n, uint32_t step) const {
    for (uint32_t i = (step + 1) / 2; i > 0; --i) {
      n = Source(n, 0);
      if (n >= state_->num_parsed_) return;
    }
    if (step % 2 != 0) return PrefetchContent(n);
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t source = Source(n, i);
      if (source < state_->num_parsed_) PrefetchTables(source);
    }
  }
  // Returns the source of input `i`; kNoNode if there is none.
  uint32_t Source(uint32_t n, uint32_t i) const {
    const uint32_t edge = state_->index_.first_edge(n) + i;
    return edge < state_->index_.first_edge(n + 1) ? state_->edges_[edge].source
                                                   : kNoNode;
  }
  void PrefetchTables(uint32_t n) const {
    const GraphIndex& index = state_->index_;
    Prefetch(&index.records[n].inputs);
    Prefetch(&index.records[n + 1].first_edge);
    Prefetch(&index.ops[n]);
    state_->uses_.Prefetch(n);
    state_->overlay_.Prefetch(n);
  }
  void PrefetchContent(uint32_t n) const {
    Prefetch(&state_->edges_[state_->index_.first_edge(n)]);
    PrefetchBytes(n);
  }
  void PrefetchBytes(uint32_t n) const {
    const char* const tail =
        state_->index_.base + state_->index_.records[n].tail;
    Prefetch(tail);
    Prefetch(tail + 64);
    Prefetch(tail + 128);
    Prefetch(tail + 192);
  }

  const GraphState* state_;
};

// Prefetches in a loop over all nodes. A pass that has edited a node will
// probably edit other nodes of the same op.
class GraphPrefetch : NodePrefetch {
 public:
  using NodePrefetch::NodePrefetch;

  // Prefetches for the nodes after `n`. Call before node `n` is visited. Takes
  // and returns a copy, so that the loop's iterator stays in registers.
  ABSL_ATTRIBUTE_NOINLINE static GraphPrefetch Advance(GraphPrefetch prefetch,
                                                       uint32_t n) {
    prefetch.Advance(n);
    return prefetch;
  }

 private:
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Advance(uint32_t n) {
    for (; next_ <= n; ++next_) {
      const uint32_t soon = next_ + GraphState::kAhead;
      if (soon < state_->num_parsed_) PrefetchBytes(soon);
      const uint32_t ahead = next_ + kSteps * kDistance;
      worth_ = worth_ << 1 | uint64_t{IsWorthIt(ahead)};
      if (ABSL_PREDICT_TRUE((worth_ & kTurns) == 0)) continue;
      for (uint32_t step = 0; step < kSteps; ++step) {
        const uint32_t back = step * kDistance;
        if ((worth_ >> back & 1) != 0) Step(ahead - back, step);
      }
    }
  }

  static constexpr uint32_t kSteps = 5;
  static constexpr uint32_t kDistance = 6;  // In nodes, between two steps.
  // A mask of the bits of worth_ for which a step is due.
  static constexpr uint64_t kTurns = [] {
    uint64_t turns = 0;
    for (uint32_t i = 0; i < kSteps; ++i) turns |= uint64_t{1} << i * kDistance;
    return turns;
  }();
  // Nodes at most this far apart are probably in the cache together.
  static constexpr uint32_t kNear = 64;

  // Returns whether a pass will probably follow the node's inputs to nodes that
  // are not in the cache. A pass that has edited a node will probably edit
  // other nodes of the same op.
  bool IsWorthIt(uint32_t n) const {
    if (!state_->has_edges_ || n >= state_->num_parsed_ ||
        !state_->MayBeEdited(state_->op(n))) {
      return false;
    }
    const uint32_t source = Source(n, 0);
    return source < state_->num_parsed_ && n - source + kNear > 2 * kNear;
  }

  uint32_t next_ = 0;
  uint64_t worth_ = 0;  // IsWorthIt() of the last 64 nodes; bit 0: the newest.
};

// Prefetches in a loop over the nodes of one op, once it has edited one of
// them.
class OpPrefetch : NodePrefetch {
 public:
  using NodePrefetch::NodePrefetch;

  // Prefetches for the nodes after `n`, which have this op. Call before node
  // `n` is visited.
  ABSL_ATTRIBUTE_NOINLINE void Advance(uint32_t n, uint32_t op) {
    if (!state_->has_edges_ || !state_->MayBeEdited(op)) return;
    while (soon_[(end_ - kAhead) % kSize] <= n) {
      const uint32_t next = std::max(n, soon_[(end_ - 1) % kSize]) + 1;
      soon_[end_ % kSize] = FindOp(state_->ops(), next, op);
      for (uint32_t step = 0; step < kSteps; ++step) {
        const uint32_t node = soon_[(end_ - step * kDistance) % kSize];
        if (node < state_->num_parsed_) Load(node, step);
      }
      ++end_;
    }
  }

 private:
  static constexpr uint32_t kSteps = 7;
  static constexpr uint32_t kDistance = 2;  // In visited nodes.
  static constexpr uint32_t kAhead = kSteps * kDistance;
  static constexpr uint32_t kSize = 16;

  void Load(uint32_t n, uint32_t step) const {
    if (step == 0) return PrefetchTables(n);
    if (step == 1) return PrefetchContent(n);
    Step(n, step - 2);
  }

  uint32_t soon_[kSize] = {};  // The nodes to visit, as a ring.
  uint32_t end_ = kSize;       // The end of the ring, modulo kSize.
};

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_PREFETCH_H_
