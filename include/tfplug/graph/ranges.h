// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_RANGES_H_
#define TFPLUG_GRAPH_RANGES_H_

#include <cstddef>
#include <cstdint>

#include "absl/base/optimization.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/graph/internal/graph_state.h"
#include "tfplug/graph/internal/prefetch.h"
#include "tfplug/graph/node.h"

#pragma GCC visibility push(hidden)

// The ranges of nodes and edges, for range-based for loops:
//
//   for (tfplug::Node node : graph.nodes("Relu"))
//     for (tfplug::Input input : node.inputs()) Visit(input.from.node);
//
// The graph may be edited in the loop. Removed nodes and edges are skipped, and
// added ones come last.
namespace tfplug {

// The nodes of a Graph, in the order of the GraphDef.
class NodeRange {
 public:
  class Iterator {
   public:
    explicit Iterator(graph_internal::GraphState* state)
        : state_(state), is_prefetched_(state->is_large()), prefetch_(state) {
      Settle();
    }
    Node operator*() const {
      return internal::Access::Construct<Node>(state_, at_);
    }
    Iterator& operator++() {
      ++at_;
      Settle();
      return *this;
    }
    // The operand must be end().
    bool operator!=(std::nullptr_t) const { return at_ < state_->size(); }

   private:
    void Settle() {
      const uint32_t* const ops = state_->ops().data();
      const uint32_t size = state_->size();
      while (at_ < size && ops[at_] == graph_internal::GraphState::kRemoved)
        ++at_;
      if (ABSL_PREDICT_FALSE(is_prefetched_)) {
        prefetch_ = graph_internal::GraphPrefetch::Advance(prefetch_, at_);
      }
    }

    graph_internal::GraphState* state_;
    uint32_t at_ = 0;
    bool is_prefetched_;
    graph_internal::GraphPrefetch prefetch_;
  };
  Iterator begin() const { return Iterator(state_); }
  std::nullptr_t end() const { return nullptr; }

 private:
  friend struct internal::Access;
  explicit NodeRange(graph_internal::GraphState* state) : state_(state) {}

  graph_internal::GraphState* state_;
};

// The nodes of one op, in the order of the GraphDef.
class OpRange {
 public:
  class Iterator {
   public:
    Iterator(graph_internal::GraphState* state, uint32_t op)
        : state_(state),
          op_(op),
          at_(state->op_table().count(op) > 0 ? 0 : state->size()),
          is_prefetched_(state->is_large()),
          prefetch_(state) {
      Settle();
    }
    Node operator*() const {
      return internal::Access::Construct<Node>(state_, at_);
    }
    Iterator& operator++() {
      ++at_;
      Settle();
      return *this;
    }
    // The operand must be end().
    bool operator!=(std::nullptr_t) const { return at_ < state_->size(); }

   private:
    void Settle() {
      at_ = graph_internal::FindOp(state_->ops(), at_, op_);
      if (ABSL_PREDICT_FALSE(is_prefetched_)) prefetch_.Advance(at_, op_);
    }

    graph_internal::GraphState* state_;
    uint32_t op_;
    uint32_t at_;
    bool is_prefetched_;
    graph_internal::OpPrefetch prefetch_;
  };
  Iterator begin() const { return Iterator(state_, op_); }
  std::nullptr_t end() const { return nullptr; }

 private:
  friend struct internal::Access;
  OpRange(graph_internal::GraphState* state, uint32_t op)
      : state_(state), op_(op) {}

  graph_internal::GraphState* state_;
  uint32_t op_;
};

// A list of nodes in an array that the Graph owns.
class NodeList {
 public:
  size_t size() const { return size_; }
  Node operator[](size_t i) const {
    return internal::Access::Construct<Node>(state_, nodes_[i]);
  }

  class Iterator {
   public:
    Iterator(graph_internal::GraphState* state, const uint32_t* at)
        : state_(state), at_(at) {}
    Node operator*() const {
      return internal::Access::Construct<Node>(state_, *at_);
    }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    graph_internal::GraphState* state_;
    const uint32_t* at_;
  };
  Iterator begin() const { return Iterator(state_, nodes_); }
  Iterator end() const { return Iterator(state_, nodes_ + size_); }

 private:
  friend struct internal::Access;
  NodeList(graph_internal::GraphState* state, const uint32_t* nodes,
           size_t size)
      : state_(state), nodes_(nodes), size_(size) {}

  graph_internal::GraphState* state_;
  const uint32_t* nodes_;
  size_t size_;
};

namespace graph_internal {

// Iterates over the data inputs, or the control inputs, of a node.
template <bool kIsControl>
class InputIterator {
 public:
  InputIterator(GraphState* state, uint32_t node) : state_(state), node_(node) {
    Settle();
  }
  InputIterator& operator++() {
    ++slot_;
    ++index_;
    Settle();
    return *this;
  }
  // The operand must be end().
  bool operator!=(std::nullptr_t) const { return edge_ != kNoEdge; }

 protected:
  Output source() const {
    const Edge& edge = state_->edge(edge_);
    if (edge.source == kNoNode) return {};
    return {internal::Access::Construct<Node>(state_, edge.source), edge.port};
  }
  int index() const { return index_; }

 private:
  void Settle() { edge_ = state_->NextInput(node_, kIsControl, &slot_); }

  GraphState* state_;
  uint32_t node_;
  uint32_t slot_ = 0;
  int index_ = 0;
  uint32_t edge_ = kNoEdge;
};

}  // namespace graph_internal

// The data inputs of a node.
class InputRange {
 public:
  class Iterator : public graph_internal::InputIterator<false> {
   public:
    using InputIterator::InputIterator;
    Input operator*() const { return {index(), source()}; }
  };
  Iterator begin() const { return Iterator(state_, node_); }
  std::nullptr_t end() const { return nullptr; }

 private:
  friend struct internal::Access;
  InputRange(graph_internal::GraphState* state, uint32_t node)
      : state_(state), node_(node) {}

  graph_internal::GraphState* state_;
  uint32_t node_;
};

// The sources of a node's control inputs.
class ControlRange {
 public:
  class Iterator : public graph_internal::InputIterator<true> {
   public:
    using InputIterator::InputIterator;
    Node operator*() const { return source().node; }
  };
  Iterator begin() const { return Iterator(state_, node_); }
  std::nullptr_t end() const { return nullptr; }

 private:
  friend struct internal::Access;
  ControlRange(graph_internal::GraphState* state, uint32_t node)
      : state_(state), node_(node) {}

  graph_internal::GraphState* state_;
  uint32_t node_;
};

// The uses of a node.
class UseRange {
 public:
  class Iterator {
   public:
    Iterator(graph_internal::GraphState* state, uint32_t node, int port)
        : state_(state),
          node_(node),
          port_(port),
          cursor_(state->uses(), node) {
      ++*this;
    }
    Use operator*() const {
      const Node user = internal::Access::Construct<Node>(state_, entry_->user);
      if (state_->edge(entry_->edge).port == graph_internal::kControlPort) {
        return {user, kControl};
      }
      return {user,
              static_cast<int>(state_->InputIndex(entry_->user, entry_->edge))};
    }
    Iterator& operator++() {
      do {
        entry_ = cursor_.Next();
      } while (entry_ != nullptr && !IsInRange());
      return *this;
    }
    // The operand must be end().
    bool operator!=(std::nullptr_t) const { return entry_ != nullptr; }

   private:
    bool IsInRange() const {
      const graph_internal::Edge& edge = state_->edge(entry_->edge);
      return edge.source == node_ && (port_ == kAllPorts || port_ == edge.port);
    }

    graph_internal::GraphState* state_;
    uint32_t node_;
    int port_;
    graph_internal::UseLists::Cursor cursor_;
    const graph_internal::UseEntry* entry_ = nullptr;
  };
  Iterator begin() const { return Iterator(state_, node_, port_); }
  std::nullptr_t end() const { return nullptr; }
  bool empty() const { return !(begin() != end()); }

 private:
  friend class Node;
  friend struct internal::Access;
  static constexpr int kAllPorts = -2;
  UseRange(graph_internal::GraphState* state, uint32_t node, int port)
      : state_(state), node_(node), port_(port) {}

  graph_internal::GraphState* state_;
  uint32_t node_;
  int port_;
};

inline InputRange Node::inputs() const {
  return internal::Access::Construct<InputRange>(state_, id_);
}
inline ControlRange Node::controls() const {
  return internal::Access::Construct<ControlRange>(state_, id_);
}
inline UseRange Node::uses() const { return uses(UseRange::kAllPorts); }
inline UseRange Node::uses(int port) const {
  return internal::Access::Construct<UseRange>(state_, id_, port);
}
inline int Node::num_uses(int port) const {
  int count = 0;
  const UseRange range = uses(port);
  for (auto it = range.begin(); it != range.end(); ++it) ++count;
  return count;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_RANGES_H_
