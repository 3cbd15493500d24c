// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_NODE_H_
#define TFPLUG_GRAPH_NODE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/internal/editor.h"
#include "tfplug/graph/internal/graph_state.h"
#include "tfplug/graph/node_content.h"

namespace tfplug {

class Node;
class UseRange;

// In place of an input's number: a control edge.
inline constexpr int kControl = -1;

struct Output;
struct Use;

// A node of a Graph: a handle, as cheap as two words. It stays what it is as
// long as the Graph lives, whatever becomes of other nodes. A default one is
// null, and nothing else may be asked of it; a removed node says what it said.
//
// Names and bytes that are given out live as long as the Graph does and the
// bytes that it was read from. Setters change the graph, not the handle. They
// return INVALID_ARGUMENT, NOT_FOUND or ALREADY_EXISTS, naming the node, and
// have then changed nothing.
class Node : public NodeContent {
 public:
  Node() = default;
  // The Graph's.
  Node(internal::GraphState* graph, uint32_t id) : NodeContent(graph, id) {}

  explicit operator bool() const { return graph_ != nullptr; }

  // ---- Edges ----

  // Data inputs, as they are counted in the op's definition. The node of an
  // input is null where the graph has no node of that name; Graph::status()
  // says so too.
  int num_inputs() const;
  Output input(int i) const;
  // Nodes that have to run before this one.
  int num_controls() const;
  Node control(int i) const;

  // In the body of a function (Graph::functions()), where ports have names: the
  // output `number` of `output`, as in "node:output:0".
  Output output(absl::string_view output, int number) const;

  // Who uses this node, in the order of the graph; later edges come last. The
  // graph may be edited meanwhile.
  UseRange uses() const;
  // Data edges from output `port` only; kControl: control edges only.
  UseRange uses(int port) const;
  int num_uses() const { return static_cast<int>(graph_->uses().count(id_)); }
  int num_uses(int port) const;

  // `i` may be num_inputs() to add one.
  absl::Status SetInput(int i, Output from) const;
  absl::Status AddInput(Output from) const;
  // Those behind it move up.
  absl::Status RemoveInput(int i) const;
  // Nothing happens if there is one already, or none.
  absl::Status AddControl(Node from) const;
  absl::Status RemoveControl(Node from) const;

  // ALREADY_EXISTS if another node has it. Those who use the node follow.
  absl::Status SetName(absl::string_view name) const;

  friend bool operator==(Node a, Node b) {
    return a.graph_ == b.graph_ && a.id_ == b.id_;
  }
  friend bool operator!=(Node a, Node b) { return !(a == b); }
  friend bool operator<(Node a, Node b) {
    return a.graph_ != b.graph_ ? std::less<>()(a.graph_, b.graph_)
                                : a.id_ < b.id_;
  }
  template <class H>
  friend H AbslHashValue(H state, Node node) {
    return H::combine(std::move(state), node.graph_, node.id_);
  }

 private:
  // Where data input or control edge `i` stands among all; the number of all if
  // there are not so many.
  uint32_t Place(int i, bool control) const;
  int CountInputs(bool control) const;
  // The node that data input or control edge `i` comes from, and its port.
  Output Source(int i, bool control) const;
  absl::Status CheckSource(Node from) const;
};

// One output of a node.
struct Output {
  Output() = default;
  Output(Node node, int port = 0) : node(node), port(port) {}

  explicit operator bool() const { return static_cast<bool>(node); }
  friend bool operator==(Output a, Output b) {
    return a.node == b.node && a.port == b.port;
  }
  friend bool operator!=(Output a, Output b) { return !(a == b); }

  Node node;
  int port = 0;
};

// One input of a node; or with kControl a control edge to it.
struct Use {
  Node node;
  int input = 0;

  bool is_control() const { return input == kControl; }
};

// The uses of a node, for range-for. Edges that come to an end meanwhile are
// left out, later ones come last.
class UseRange {
 public:
  // `port`: only those of this output, or kControl; kAll: all.
  static constexpr int kAll = -2;
  UseRange(internal::GraphState* graph, uint32_t node, int port)
      : graph_(graph), node_(node), port_(port) {}

  class Iterator {
   public:
    Iterator(internal::GraphState* graph, uint32_t node, int port)
        : graph_(graph),
          node_(node),
          port_(port),
          cursor_(graph->uses(), node) {
      ++*this;
    }
    Use operator*() const;
    Iterator& operator++() {
      do {
        entry_ = cursor_.Next();
      } while (entry_ != nullptr && !Fits());
      return *this;
    }
    // Only the end is ever compared with.
    bool operator!=(std::nullptr_t) const { return entry_ != nullptr; }

   private:
    bool Fits() const {
      const internal::Edge& edge = graph_->edge(entry_->edge);
      return edge.source == node_ && (port_ == kAll || port_ == edge.port);
    }

    internal::GraphState* graph_;
    uint32_t node_;
    int port_;
    internal::UseLists::Cursor cursor_;
    const internal::UseEntry* entry_ = nullptr;
  };
  Iterator begin() const { return Iterator(graph_, node_, port_); }
  std::nullptr_t end() const { return nullptr; }
  bool empty() const { return !(begin() != end()); }

 private:
  internal::GraphState* graph_;
  uint32_t node_;
  int port_;
};

// ---- Implementation ----

inline Use UseRange::Iterator::operator*() const {
  const Node user(graph_, entry_->user);
  if (graph_->edge(entry_->edge).port == internal::kControlPort) {
    return {user, kControl};
  }
  int input = 0;
  for (uint32_t i = 0;; ++i) {
    const uint32_t edge = graph_->inputs(entry_->user)[i];
    if (edge == entry_->edge) return {user, input};
    if (graph_->edge(edge).port != internal::kControlPort) ++input;
  }
}

inline UseRange Node::uses() const {
  return UseRange(graph_, id_, UseRange::kAll);
}
inline UseRange Node::uses(int port) const {
  return UseRange(graph_, id_, port);
}
inline int Node::num_uses(int port) const {
  int count = 0;
  for (Use use : uses(port)) count += use.node ? 1 : 0;
  return count;
}

inline uint32_t Node::Place(int i, bool control) const {
  return graph_->FindInput(id_, [&](const internal::Edge& edge) {
    return (edge.port == internal::kControlPort) == control && i-- == 0;
  });
}
inline int Node::CountInputs(bool control) const {
  int count = 0;
  graph_->FindInput(id_, [&](const internal::Edge& edge) {
    count += (edge.port == internal::kControlPort) == control;
    return false;
  });
  return count;
}
inline Output Node::Source(int i, bool control) const {
  Output output;
  graph_->FindInput(id_, [&](const internal::Edge& edge) {
    if ((edge.port == internal::kControlPort) != control || i-- != 0) {
      return false;
    }
    if (edge.source != internal::kNoNode) {
      output = {Node(graph_, edge.source), edge.port};
    }
    return true;
  });
  return output;
}
inline Output Node::output(absl::string_view output, int number) const {
  return {*this, graph_->BodyPort(absl::StrCat(output, ":", number))};
}
inline int Node::num_inputs() const { return CountInputs(false); }
inline int Node::num_controls() const { return CountInputs(true); }
inline Output Node::input(int i) const { return Source(i, false); }
inline Node Node::control(int i) const { return Source(i, true).node; }

inline absl::Status Node::CheckSource(Node from) const {
  if (from.graph_ != graph_ || from.removed()) {
    return absl::InvalidArgumentError(absl::StrCat(
        Describe(), "an input has to come from a node that is in the graph; ",
        !from                   ? "this one is null"
        : from.graph_ != graph_ ? "this one is in another graph"
                                : "this one is removed"));
  }
  if (removed()) {
    return absl::InvalidArgumentError(Describe() + "it is removed");
  }
  return absl::OkStatus();
}

inline absl::Status Node::SetInput(int i, Output from) const {
  if (absl::Status status = CheckSource(from.node); !status.ok()) return status;
  const uint32_t place = Place(i, false);
  const bool is_there = place < graph_->inputs(id_).size();
  if (!is_there && i == num_inputs()) return AddInput(from);
  if (!is_there || from.port < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(Describe(), "it has ", num_inputs(), " inputs; input ", i,
                     " cannot be set to output ", from.port));
  }
  Edit().ReplaceEdge(id_, place, {from.node.id_, from.port});
  return absl::OkStatus();
}
inline absl::Status Node::AddInput(Output from) const {
  if (absl::Status status = CheckSource(from.node); !status.ok()) return status;
  if (from.port < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(Describe(), "there is no output ", from.port));
  }
  // Behind the last data input.
  uint32_t place = 0, i = 0;
  graph_->FindInput(id_, [&](const internal::Edge& edge) {
    ++i;
    if (edge.port != internal::kControlPort) place = i;
    return false;
  });
  Edit().InsertEdge(id_, place, {from.node.id_, from.port});
  return absl::OkStatus();
}
inline absl::Status Node::RemoveInput(int i) const {
  const uint32_t count = graph_->inputs(id_).size();
  const uint32_t place = i < 0 ? count : Place(i, false);
  if (place == count) {
    return absl::NotFoundError(absl::StrCat(Describe(), "it has ", num_inputs(),
                                            " inputs, and no input ", i));
  }
  Edit().RemoveEdge(id_, place);
  return absl::OkStatus();
}
inline absl::Status Node::AddControl(Node from) const {
  if (absl::Status status = CheckSource(from); !status.ok()) return status;
  for (int i = 0, count = num_controls(); i < count; ++i) {
    if (control(i) == from) return absl::OkStatus();
  }
  Edit().InsertEdge(id_, graph_->inputs(id_).size(),
                    {from.id_, internal::kControlPort});
  return absl::OkStatus();
}
inline absl::Status Node::RemoveControl(Node from) const {
  for (int i = num_controls() - 1; i >= 0; --i) {
    if (control(i) == from) Edit().RemoveEdge(id_, Place(i, true));
  }
  return absl::OkStatus();
}

inline absl::Status Node::SetName(absl::string_view name) const {
  const uint32_t other = graph_->FindNode(name);
  if (other == id_) return absl::OkStatus();
  if (name.empty() || other != internal::kNoNode) {
    const char* const why =
        name.empty() ? "an empty name" : "a name that another node has";
    return absl::Status(
        name.empty() ? absl::StatusCode::kInvalidArgument
                     : absl::StatusCode::kAlreadyExists,
        absl::StrCat(Describe(), "it cannot be called '", name, "', ", why));
  }
  Edit().SetName(id_, graph_->Keep(name));
  return absl::OkStatus();
}

}  // namespace tfplug

namespace std {
template <>
struct hash<tfplug::Node> {
  size_t operator()(tfplug::Node node) const {
    return hash<void*>()(node.graph()) ^
           size_t { node.id() } * 0x9e3779b97f4a7c15;
  }
};
}  // namespace std

#endif  // TFPLUG_GRAPH_NODE_H_
