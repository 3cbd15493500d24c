// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_GRAPH_H_
#define TFPLUG_GRAPH_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/node.h"
#include "tfplug/internal/graph_core.h"
#include "tfplug/internal/graph_editor.h"
#include "tfplug/internal/graph_order.h"
#include "tfplug/internal/graph_writer.h"

namespace tfplug {

// The nodes of a Graph, or those of one op, for range-for: in the order of the
// file, then added ones. The graph may be edited meanwhile; nodes that are
// removed are left out, added ones come last.
class NodeRange {
 public:
  static constexpr uint32_t kAll = 0xfffffffe;
  NodeRange(internal::GraphCore* graph, uint32_t op) : graph_(graph), op_(op) {}

  class Iterator {
   public:
    Iterator(internal::GraphCore* graph, uint32_t op) : graph_(graph), op_(op) {
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
      } else {
        while (at_ < size && ops[at_] != op_) ++at_;
      }
    }

    internal::GraphCore* graph_;
    uint32_t op_;
    uint32_t at_ = 0;
  };
  Iterator begin() const { return Iterator(graph_, op_); }
  std::nullptr_t end() const { return nullptr; }

 private:
  internal::GraphCore* graph_;
  uint32_t op_;
};

// Memory that Graphs leave to the ones after them: for a pipeline, or a thread,
// that sees many. One Graph at a time has it; it outlives that one.
class GraphWorkspace {
 public:
  GraphWorkspace() = default;

 private:
  friend class Graph;
  std::unique_ptr<internal::GraphCore> spare_;
};

// A GraphDef, read and edited in its serialised form: nothing is copied but
// what is edited. For one thread.
class Graph {
 public:
  // One with no nodes.
  Graph() : Graph(nullptr) {}
  // Borrows the bytes of a serialised GraphDef, which have to outlive it.
  // INVALID_ARGUMENT if they are none, as far as one pass over nodes and fields
  // sees, or are more than core itself can read (2^31 - 1).
  //
  // The pass finds names and ops. Which node has a name, where inputs come
  // from, who uses a node, and the order are found out when asked for, for all
  // at once.
  static absl::StatusOr<Graph> Parse(absl::string_view graph_def,
                                     GraphWorkspace* workspace = nullptr) {
    Graph graph(workspace);
    absl::Status status = graph.core_->Parse(graph_def, kNodeField);
    if (!status.ok()) return status;
    return graph;
  }
  // Nodes stay what they are when their Graph is moved.
  Graph(Graph&&) = default;
  Graph& operator=(Graph&& other) {
    if (this != &other) {
      GiveBack();
      core_ = std::move(other.core_);
      workspace_ = other.workspace_;
      replacement_ = std::move(other.replacement_);
    }
    return *this;
  }
  ~Graph() { GiveBack(); }

  int64_t num_nodes() const { return core_->num_live(); }
  // Above all Node::id(), which are never used twice.
  uint32_t max_id() const { return core_->size(); }
  // From the index alone.
  bool has_op(absl::string_view op) const {
    const uint32_t number = core_->op_table().Find(op);
    return number != internal::OpTable::kNone &&
           core_->op_table().count(number) > 0;
  }
  // What Node::op_number() is for nodes of this op, even later ones.
  uint32_t OpNumber(absl::string_view op) { return core_->OpNumber(op); }
  NodeRange nodes() const { return NodeRange(core_.get(), NodeRange::kAll); }
  NodeRange nodes(absl::string_view op) {
    return NodeRange(core_.get(), OpNumber(op));
  }
  // Null if there is none.
  Node FindNode(absl::string_view name) const {
    const uint32_t n = core_->FindNode(name);
    return n == internal::kNoNode ? Node() : Node(core_.get(), n);
  }
  // Each node after those that it takes inputs from, control edges included;
  // the edges that close loops, from NextIteration to Merge, do not count. That
  // of the file if it is one. INVALID_ARGUMENT names the nodes of a cycle.
  absl::StatusOr<std::vector<Node>> TopologicalOrder();

  // ---- Edits ----
  // One that does not succeed names the node and has changed nothing.

  // ALREADY_EXISTS if the name is taken, INVALID_ARGUMENT if it is empty.
  absl::StatusOr<Node> AddNode(absl::string_view name, absl::string_view op);
  // `prefix`, or if it is taken the first free of `prefix`_1, `prefix`_2, ...
  std::string UniqueName(absl::string_view prefix);
  // FAILED_PRECONDITION, naming a user, while it has uses.
  absl::Status RemoveNode(Node node);
  // Data edges from output `from` come from `to`; those of the node `to` itself
  // stay, so that it can be put in between.
  absl::Status ReplaceUses(Output from, Output to);
  // All edges from `from`, control edges too, come from the same output of
  // `to`; those of the node `to` itself stay.
  absl::Status ReplaceNode(Node from, Node to);
  // All of it by another serialised GraphDef, which is the Graph's then. Nodes
  // that were handed out are no more. INVALID_ARGUMENT as Parse() has it.
  absl::Status Replace(std::string graph_def);

  // ---- Result ----

  // Whether there was any edit.
  bool changed() const { return core_->changed(); }
  // INVALID_ARGUMENT for what was found wrong meanwhile: nodes of one name,
  // inputs from nodes that there are not. Such a graph core refuses.
  const absl::Status& status() const { return core_->status(); }
  // Of the edited GraphDef. What was not touched is the bytes that it was.
  size_t ByteSize() { return internal::GraphWriter(*core_).ByteSize(); }
  // To exactly ByteSize() bytes, which was asked for since the last edit.
  void WriteTo(char* to) { internal::GraphWriter(*core_).Write(to); }
  std::string ToString() {
    std::string bytes(ByteSize(), '\0');
    WriteTo(bytes.data());
    return bytes;
  }

 private:
  static constexpr uint32_t kNodeField = 1;  // Of a GraphDef.

  explicit Graph(GraphWorkspace* workspace) : workspace_(workspace) {
    if (workspace != nullptr) core_ = std::move(workspace->spare_);
    if (core_ == nullptr) core_ = std::make_unique<internal::GraphCore>();
    core_->Clear();
  }
  void GiveBack() {
    if (workspace_ != nullptr && core_ != nullptr) {
      workspace_->spare_ = std::move(core_);
    }
  }
  absl::Status CheckNode(Node node, const char* what) const;

  std::unique_ptr<internal::GraphCore> core_;
  GraphWorkspace* workspace_;
  std::unique_ptr<const std::string> replacement_;
};

// ---- Implementation ----

inline absl::StatusOr<std::vector<Node>> Graph::TopologicalOrder() {
  internal::Array<uint32_t> order;
  absl::Status status = internal::TopologicalSort(*core_).Run(order);
  if (!status.ok()) return status;
  std::vector<Node> nodes;
  nodes.reserve(order.size());
  for (uint32_t n : order) nodes.emplace_back(core_.get(), n);
  return nodes;
}

inline absl::Status Graph::CheckNode(Node node, const char* what) const {
  if (node.graph() == core_.get() && !node.removed()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, ": ",
      !node ? "the node is null"
            : absl::StrCat("node '", node.name(), "' is ",
                           node.graph() == core_.get() ? "removed"
                                                       : "in another graph")));
}

inline absl::StatusOr<Node> Graph::AddNode(absl::string_view name,
                                           absl::string_view op) {
  if (name.empty()) {
    return absl::InvalidArgumentError("AddNode: a node needs a name");
  }
  if (FindNode(name)) {
    return absl::AlreadyExistsError(
        absl::StrCat("AddNode: there is a node '", name,
                     "'; UniqueName() finds a free name"));
  }
  return Node(core_.get(),
              internal::GraphEditor(*core_).Add(core_->Keep(name), op));
}

inline std::string Graph::UniqueName(absl::string_view prefix) {
  std::string name(prefix);
  for (int i = 1; name.empty() || FindNode(name); ++i) {
    name = absl::StrCat(prefix, "_", i);
  }
  return name;
}

inline absl::Status Graph::RemoveNode(Node node) {
  if (auto status = CheckNode(node, "RemoveNode"); !status.ok()) return status;
  if (node.num_uses() > 0)
    for (Use use : node.uses()) {
      if (use.node == node) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("RemoveNode: node '", node.name(), "' (", node.op(),
                       ") is still used by '", use.node.name(), "'"));
    }
  internal::GraphEditor(*core_).Remove(node.id());
  return absl::OkStatus();
}

inline absl::Status Graph::ReplaceUses(Output from, Output to) {
  for (const Output& output : {from, to}) {
    auto status = CheckNode(output.node, "ReplaceUses");
    if (!status.ok()) return status;
    if (output.port < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("ReplaceUses: node '", output.node.name(),
                       "' has no output ", output.port));
    }
  }
  if (from == to) return absl::OkStatus();
  for (Use use : from.node.uses(from.port)) {
    if (use.node == to.node) continue;
    auto status = use.node.SetInput(use.input, to);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

inline absl::Status Graph::ReplaceNode(Node from, Node to) {
  for (Node node : {from, to}) {
    auto status = CheckNode(node, "ReplaceNode");
    if (!status.ok()) return status;
  }
  if (from == to) return absl::OkStatus();
  for (Use use : from.uses()) {
    if (use.node == to) continue;
    absl::Status status;
    if (use.is_control()) {
      status = use.node.RemoveControl(from);
      if (status.ok()) status = use.node.AddControl(to);
    } else {
      status =
          use.node.SetInput(use.input, {to, use.node.input(use.input).port});
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

inline absl::Status Graph::Replace(std::string graph_def) {
  auto bytes = std::make_unique<const std::string>(std::move(graph_def));
  absl::StatusOr<Graph> graph = Parse(*bytes);
  if (!graph.ok()) return graph.status();
  core_ = std::move(graph->core_);
  core_->MarkChanged();
  replacement_ = std::move(bytes);
  return absl::OkStatus();
}

}  // namespace tfplug

#endif  // TFPLUG_GRAPH_GRAPH_H_
