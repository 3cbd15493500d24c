// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_NODE_RANGE_H_
#define TFPLUG_GRAPH_NODE_RANGE_H_

#include <cstddef>
#include <cstdint>

#include "tfplug/graph/internal/graph_state.h"
#include "tfplug/graph/internal/prefetch.h"
#include "tfplug/graph/node.h"

namespace tfplug {

// The nodes of a Graph, or those of one op, for range-for: in the order of the
// file, then added ones. The graph may be edited meanwhile; nodes that are
// removed are left out, added ones come last.
class NodeRange {
 public:
  static constexpr uint32_t kAll = 0xfffffffe;
  NodeRange(internal::GraphState* graph, uint32_t op)
      : graph_(graph), op_(op) {}

  class Iterator {
   public:
    Iterator(internal::GraphState* graph, uint32_t op)
        : graph_(graph), op_(op), prefetch_(graph) {
      Settle();
    }
    Node operator*() const { return Node(graph_, at_); }
    Iterator& operator++() {
      ++at_;
      Settle();
      return *this;
    }
    // Only the end is ever compared with.
    bool operator!=(std::nullptr_t) const { return at_ < graph_->size(); }

   private:
    void Settle() {
      const uint32_t* const ops = graph_->ops().data();
      const uint32_t size = graph_->size();
      if (op_ == kAll) {
        while (at_ < size && !graph_->live(at_)) ++at_;
        if (graph_->is_large()) prefetch_.Advance(at_);
      } else {
        while (at_ < size && ops[at_] != op_) ++at_;
      }
    }

    internal::GraphState* graph_;
    uint32_t op_;
    uint32_t at_ = 0;
    internal::GraphPrefetch prefetch_;
  };
  Iterator begin() const { return Iterator(graph_, op_); }
  std::nullptr_t end() const { return nullptr; }

 private:
  internal::GraphState* graph_;
  uint32_t op_;
};

// Nodes in an array of the graph's.
class NodeList {
 public:
  NodeList(internal::GraphState* graph, const uint32_t* nodes, size_t size)
      : graph_(graph), nodes_(nodes), size_(size) {}

  size_t size() const { return size_; }
  Node operator[](size_t i) const { return Node(graph_, nodes_[i]); }

  class Iterator {
   public:
    Iterator(internal::GraphState* graph, const uint32_t* at)
        : graph_(graph), at_(at) {}
    Node operator*() const { return Node(graph_, *at_); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    internal::GraphState* graph_;
    const uint32_t* at_;
  };
  Iterator begin() const { return Iterator(graph_, nodes_); }
  Iterator end() const { return Iterator(graph_, nodes_ + size_); }

 private:
  internal::GraphState* graph_;
  const uint32_t* nodes_;
  size_t size_;
};

}  // namespace tfplug

#endif  // TFPLUG_GRAPH_NODE_RANGE_H_
