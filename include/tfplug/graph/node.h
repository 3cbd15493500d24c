// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_NODE_H_
#define TFPLUG_GRAPH_NODE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/graph/internal/editor.h"
#include "tfplug/graph/internal/graph_state.h"
#include "tfplug/graph/node_content.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Defined in ranges.h.
class InputRange;
class ControlRange;
class UseRange;
struct Output;

// Stands for a control edge where an input's index or a port is expected.
inline constexpr int kControl = -1;

// A handle to a node of a Graph, the size of two pointers. It stays valid as
// long as the Graph exists, across all edits except Graph::Replace(). A
// default-constructed Node is null: only operator bool and comparisons are
// valid. A removed node keeps its last name and attributes.
//
// Returned names and bytes live as long as the Graph and the bytes that it was
// parsed from. Setters change the graph, not the handle. A failed setter leaves
// the graph unchanged; its status is INVALID_ARGUMENT, NOT_FOUND or
// ALREADY_EXISTS and names the node.
//
// Each operation takes time logarithmic in the number of the node's inputs,
// unless its comment states otherwise.
class Node : public NodeContent {
 public:
  Node() = default;

  explicit operator bool() const { return state_ != nullptr; }

  // ---- Edges ----

  // Returns the data inputs, in the order of the op's definition. The source of
  // an input is null if the graph has no node of that name; see
  // Graph::status().
  InputRange inputs() const;
  int num_inputs() const { return Count(false); }
  Output input(int i) const;
  // Returns the nodes that must run before this one.
  ControlRange controls() const;
  int num_controls() const { return Count(true); }
  Node control(int i) const;

  // Returns the output that is written "node:output:index" in the body of a
  // function (Graph::GetFunctions()), where ports have names.
  Output NamedOutput(absl::string_view output, int index) const;

  // Returns the data and control inputs that come from this node, in the order
  // of the GraphDef; added edges come last. The graph may be edited during a
  // loop over them.
  UseRange uses() const;
  // Restricts uses() to the data edges from output `port` or, with kControl, to
  // the control edges.
  UseRange uses(int port) const;
  int num_uses() const { return static_cast<int>(state_->num_uses(id_)); }
  // Takes time linear in num_uses().
  int num_uses(int port) const;

  // Sets data input `i`, or adds an input if `i` is num_inputs(). The first
  // edit of a node's inputs takes time linear in their number.
  absl::Status SetInput(int i, Output from) const;
  absl::Status AddInput(Output from) const;
  // Replaces all data inputs.
  absl::Status SetInputs(absl::Span<const Output> from) const;
  // Removes data input `i`. The indices of later inputs decrease by one.
  absl::Status RemoveInput(int i) const;
  // AddControl does nothing if the control edge already exists, RemoveControl
  // if it does not exist. Linear in the number of control inputs or in
  // from.num_uses(), whichever is less.
  absl::Status AddControl(Node from) const;
  absl::Status RemoveControl(Node from) const;

  // Renames the node and updates the inputs of its users. ALREADY_EXISTS if
  // another node has the name; INVALID_ARGUMENT for a name to which inputs
  // could not refer.
  absl::Status SetName(absl::string_view name) const;

  friend bool operator==(Node a, Node b) {
    return a.state_ == b.state_ && a.id_ == b.id_;
  }
  friend bool operator!=(Node a, Node b) { return !(a == b); }
  friend bool operator<(Node a, Node b) {
    return a.state_ != b.state_ ? std::less<>()(a.state_, b.state_)
                                : a.id_ < b.id_;
  }
  template <class H>
  friend H AbslHashValue(H hash, Node node) {
    return H::combine(std::move(hash), node.state_, node.id_);
  }

 private:
  friend struct internal::Access;
  Node(graph_internal::GraphState* state, uint32_t id)
      : NodeContent(state, id) {}

  int Count(bool control) const {
    return static_cast<int>(state_->num_inputs(id_, control));
  }
  uint32_t FindInput(int i, bool control) const {
    return state_->FindInput(id_, control, static_cast<uint32_t>(i));
  }
  Output SourceOf(uint32_t edge) const;
  absl::Status CheckSource(Node from) const;
  absl::Status DescribeSource(Node from) const;  // For a failed check.
  absl::Status CheckInput(Output from) const;
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

// One data input of a node: its index, and the output that it comes from.
struct Input {
  int index = 0;
  Output from;
};

// One use of a node: the node that uses it, and the index of the data input, or
// kControl for a control edge.
struct Use {
  Node node;
  int input = 0;

  bool is_control() const { return input == kControl; }
};

// ---- Implementation ----

inline Output Node::SourceOf(uint32_t edge) const {
  if (edge == graph_internal::kNoEdge) return {};
  const graph_internal::Edge& found = state_->edge(edge);
  if (found.source == graph_internal::kNoNode) return {};
  return {Node(state_, found.source), found.port};
}
inline Output Node::input(int i) const { return SourceOf(FindInput(i, false)); }
inline Node Node::control(int i) const {
  return SourceOf(FindInput(i, true)).node;
}
inline Output Node::NamedOutput(absl::string_view output, int index) const {
  return {*this, state_->BodyPort(absl::StrCat(output, ":", index))};
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline absl::Status Node::CheckSource(
    Node from) const {
  if (ABSL_PREDICT_TRUE(from.state_ == state_ && !from.removed() &&
                        !removed())) {
    return absl::OkStatus();
  }
  return DescribeSource(from);
}
ABSL_ATTRIBUTE_NOINLINE inline absl::Status Node::DescribeSource(
    Node from) const {
  if (from.state_ != state_ || from.removed()) {
    return absl::InvalidArgumentError(absl::StrCat(
        Describe(), "an input must come from a node of the same graph, but ",
        !from                   ? "the source is null"
        : from.state_ != state_ ? "the source is in another graph"
                                : "the source was removed"));
  }
  return absl::InvalidArgumentError(Describe() + "the node was removed");
}

inline absl::Status Node::SetInput(int i, Output from) const {
  if (absl::Status status = CheckSource(from.node); !status.ok()) return status;
  const uint32_t edge = FindInput(i, false);
  if (edge == graph_internal::kNoEdge && i == num_inputs())
    return AddInput(from);
  if (edge == graph_internal::kNoEdge || from.port < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(Describe(), "cannot set input ", i, " to output ",
                     from.port, " of node '", from.node.name(), "': it has ",
                     num_inputs(), " inputs, and outputs begin with 0"));
  }
  Edit().ReplaceEdge(id_, edge, {from.node.id_, from.port});
  return absl::OkStatus();
}
inline absl::Status Node::CheckInput(Output from) const {
  if (absl::Status status = CheckSource(from.node); !status.ok()) return status;
  if (ABSL_PREDICT_TRUE(from.port >= 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Describe(), "an input cannot come from output ", from.port,
                   " of node '", from.node.name(), "'"));
}
inline absl::Status Node::AddInput(Output from) const {
  if (absl::Status status = CheckInput(from); !status.ok()) return status;
  Edit().AddInput(id_, {from.node.id_, from.port});
  return absl::OkStatus();
}
inline absl::Status Node::SetInputs(absl::Span<const Output> from) const {
  if (removed()) {
    return absl::InvalidArgumentError(Describe() + "the node was removed");
  }
  for (const Output& output : from) {
    if (auto status = CheckInput(output); !status.ok()) return status;
  }
  Edit().SetInputs(id_, static_cast<uint32_t>(from.size()), [&](uint32_t i) {
    return graph_internal::Edge{from[i].node.id_, from[i].port};
  });
  return absl::OkStatus();
}
inline absl::Status Node::RemoveInput(int i) const {
  const uint32_t edge = FindInput(i, false);
  if (edge == graph_internal::kNoEdge) {
    return absl::NotFoundError(absl::StrCat(Describe(), "cannot remove input ",
                                            i, ": it has ", num_inputs(),
                                            " inputs"));
  }
  Edit().RemoveEdge(id_, edge);
  return absl::OkStatus();
}
inline absl::Status Node::AddControl(Node from) const {
  if (absl::Status status = CheckSource(from); !status.ok()) return status;
  Edit().AddControl(id_, from.id_);
  return absl::OkStatus();
}
inline absl::Status Node::RemoveControl(Node from) const {
  if (from.state_ == state_) Edit().RemoveControls(id_, from.id_);
  return absl::OkStatus();
}

inline absl::Status Node::SetName(absl::string_view name) const {
  const uint32_t other = state_->FindNode(name);
  if (other == id_) return absl::OkStatus();
  if (other != graph_internal::kNoNode) {
    return absl::AlreadyExistsError(
        absl::StrCat(Describe(), "cannot be renamed to '", name,
                     "': another node has that name"));
  }
  if (absl::Status status = state_->CheckName(name); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Describe(), "cannot be renamed: ", status.message()));
  }
  Edit().SetName(id_, state_->CopyToArena(name));
  return absl::OkStatus();
}

}  // namespace tfplug

namespace std {
template <>
struct hash<tfplug::Node> {
  size_t operator()(tfplug::Node node) const {
    return hash<void*>()(tfplug::internal::Access::state(node)) ^
           size_t { node.id() } * 0x9e3779b97f4a7c15;
  }
};
}  // namespace std

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_NODE_H_
