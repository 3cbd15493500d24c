// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_PREFETCH_H_
#define TFPLUG_GRAPH_INTERNAL_PREFETCH_H_

#include <cstdint>

#include "absl/base/attributes.h"
#include "tfplug/graph/internal/graph_state.h"

namespace tfplug::internal {

// For a loop over all nodes of a graph that the processor's caches do not hold:
// has what a pass reads and edits around a node brought near before its turn,
// so that it does not wait for memory in each step from a node to its source.
class GraphPrefetch {
 public:
  explicit GraphPrefetch(const GraphState* graph) : graph_(graph) {}

  // Before the turn of node `n`.
  ABSL_ATTRIBUTE_NOINLINE void Advance(uint32_t n) {
    for (; next_ <= n; ++next_) {
      const uint32_t soon = next_ + GraphState::kAhead;
      if (soon < graph_->num_parsed_) Bytes(soon);
      const uint32_t ahead = next_ + kSteps * kDistance;
      worth_ = worth_ << 1 | uint64_t{IsWorthIt(ahead)};
      if (ABSL_PREDICT_TRUE((worth_ & kTurns) == 0)) continue;
      for (uint32_t step = 0; step < kSteps; ++step) {
        const uint32_t back = step * kDistance;
        if ((worth_ >> back & 1) != 0) Step(ahead - back, step);
      }
    }
  }

 private:
  static constexpr uint32_t kSteps = 5;
  static constexpr uint32_t kDistance = 6;  // Of the nodes of two steps.
  // In worth_: the nodes whose turn it is to make a step.
  static constexpr uint64_t kTurns = [] {
    uint64_t turns = 0;
    for (uint32_t i = 0; i < kSteps; ++i) turns |= uint64_t{1} << i * kDistance;
    return turns;
  }();
  static constexpr uint32_t kNear = 64;

  // Whether a pass will go to its sources, and they are not near anyway. A pass
  // that edited nodes of an op mostly edits others of that op, too.
  bool IsWorthIt(uint32_t n) const {
    if (!graph_->has_edges_ || n >= graph_->num_parsed_ ||
        !graph_->MayBeEdited(n)) {
      return false;
    }
    const uint32_t source = Source(n, 0);
    return source < graph_->num_parsed_ && n - source + kNear > 2 * kNear;
  }
  // Goes from `n` to its source, from there to that one's and so on: the tables
  // of a node's sources first, then the bytes and edges of the first of them.
  // What a step reads itself, those before it have brought near.
  void Step(uint32_t n, uint32_t step) const {
    for (uint32_t i = (step + 1) / 2; i > 0; --i) {
      n = Source(n, 0);
      if (n >= graph_->num_parsed_) return;
    }
    if (step % 2 != 0) {
      Prefetch(&graph_->edges_[graph_->index_.first_edge(n)]);
      return Bytes(n);
    }
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t source = Source(n, i);
      if (source < graph_->num_parsed_) Tables(source);
    }
  }
  // kNoNode if it has no input `i`.
  uint32_t Source(uint32_t n, uint32_t i) const {
    const uint32_t edge = graph_->index_.first_edge(n) + i;
    return edge < graph_->index_.first_edge(n + 1) ? graph_->edges_[edge].source
                                                   : kNoNode;
  }
  void Tables(uint32_t n) const {
    const GraphIndex& index = graph_->index_;
    Prefetch(&index.records[n].inputs);
    Prefetch(&index.records[n + 1].first_edge);
    Prefetch(&index.ops[n]);
    graph_->uses_.Prefetch(n);
    graph_->overlay_.Prefetch(n);
  }
  void Bytes(uint32_t n) const {
    const char* const rest =
        graph_->index_.base + graph_->index_.records[n].rest;
    Prefetch(rest);
    Prefetch(rest + 64);
  }

  const GraphState* graph_;
  uint32_t next_ = 0;
  uint64_t worth_ = 0;  // A bit for each node; the last one for the newest.
};

}  // namespace tfplug::internal

#endif  // TFPLUG_GRAPH_INTERNAL_PREFETCH_H_
