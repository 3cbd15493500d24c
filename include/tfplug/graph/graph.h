// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_GRAPH_H_
#define TFPLUG_GRAPH_GRAPH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/internal/editor.h"
#include "tfplug/graph/internal/function.h"
#include "tfplug/graph/internal/graph_state.h"
#include "tfplug/graph/internal/order.h"
#include "tfplug/graph/internal/writer.h"
#include "tfplug/graph/node.h"
#include "tfplug/graph/node_range.h"

namespace tfplug {

struct GraphFunction;

// Memory that Graphs leave to the ones after them: for a pipeline, or a thread,
// that sees many. One Graph at a time has it; it outlives that one.
class GraphWorkspace {
 public:
  GraphWorkspace() = default;

 private:
  friend class Graph;
  std::unique_ptr<internal::GraphState> spare_;
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
    absl::Status status = graph.core_->Parse(graph_def);
    if (!status.ok()) return status;
    return graph;
  }
  // Nodes stay what they are when their Graph is moved.
  Graph(Graph&&);
  Graph& operator=(Graph&&);
  ~Graph();

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
  // The list is the graph's; it says the same until this is asked for again.
  absl::StatusOr<NodeList> TopologicalOrder();

  // The functions of the graph's library, as graphs to read and edit; what is
  // said there comes into this graph's bytes. Core hands a library to plug-ins
  // as signatures, and optimizes bodies in calls of their own: this is for
  // tools and tests. One that cannot be read is left out, and status() says so.
  std::vector<GraphFunction>& functions();

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
  bool changed() const;
  // INVALID_ARGUMENT for what was found wrong meanwhile: nodes of one name,
  // inputs from nodes that there are not. Such a graph core refuses.
  const absl::Status& status() const { return core_->status(); }
  // The same after all names were looked at, and with Replace() all edges: for
  // a graph that is about to be written.
  const absl::Status& Check() {
    core_->BuildNameIndex();
    if (replacement_ != nullptr) core_->NeedEdges();
    return core_->status();
  }
  // Of the edited GraphDef. What was not touched is the bytes that it was.
  size_t ByteSize();
  // To exactly ByteSize() bytes, which was asked for since the last edit.
  void WriteTo(char* to) { internal::GraphWriter(*core_).Write(to); }
  std::string ToString() {
    std::string bytes(ByteSize(), '\0');
    WriteTo(&bytes[0]);
    return bytes;
  }

 private:
  explicit Graph(GraphWorkspace* workspace) : workspace_(workspace) {
    if (workspace != nullptr) core_ = std::move(workspace->spare_);
    if (core_ == nullptr) core_ = std::make_unique<internal::GraphState>();
    core_->Clear();
  }
  void GiveBack() {
    if (workspace_ != nullptr && core_ != nullptr) {
      workspace_->spare_ = std::move(core_);
    }
  }
  absl::Status CheckNode(Node node, const char* what) const;
  // Those changed functions' libraries, as patches.
  void PatchLibraries();

  std::unique_ptr<internal::GraphState> core_;
  GraphWorkspace* workspace_;
  std::unique_ptr<const std::string> replacement_;
  std::unique_ptr<std::vector<GraphFunction>> functions_;
  std::unordered_map<std::string, int> suffixes_;  // See UniqueName().
};

// A function of a graph's library. Its arguments are nodes of op _Arg, and its
// results nodes of op _Retval, with one input; those stay. Ports have names:
// see Node::output().
struct GraphFunction {
  absl::string_view name;
  Graph body;
  absl::string_view bytes;  // Of the FunctionDef, as it was.
};

// ---- Implementation ----

inline Graph::Graph(Graph&&) = default;
inline Graph& Graph::operator=(Graph&& other) {
  if (this != &other) {
    GiveBack();
    core_ = std::move(other.core_);
    workspace_ = other.workspace_;
    replacement_ = std::move(other.replacement_);
    functions_ = std::move(other.functions_);
    suffixes_ = std::move(other.suffixes_);
  }
  return *this;
}
inline Graph::~Graph() { GiveBack(); }

inline std::vector<GraphFunction>& Graph::functions() {
  if (functions_ != nullptr) return *functions_;
  functions_ = std::make_unique<std::vector<GraphFunction>>();
  for (internal::WireReader field(core_->bytes()); field.Next();) {
    if (!field.Is(internal::kLibraryField, internal::kBytesType)) continue;
    for (internal::WireReader part(field.bytes()); part.Next();) {
      if (!part.Is(internal::kFunctionInLibrary, internal::kBytesType))
        continue;
      Graph body;
      absl::Status status = body.core_->ParseFunction(part.bytes());
      if (!status.ok()) {
        core_->Note(std::move(status));
        continue;
      }
      functions_->push_back({internal::FunctionDefName(part.bytes()),
                             std::move(body), part.bytes()});
    }
  }
  return *functions_;
}

inline bool Graph::changed() const {
  if (core_->changed()) return true;
  if (functions_ == nullptr) return false;
  for (const GraphFunction& function : *functions_) {
    if (function.body.changed()) return true;
  }
  return false;
}

inline void Graph::PatchLibraries() {
  auto next = functions_->begin();
  for (internal::WireReader field(core_->bytes()); field.Next();) {
    if (!field.Is(internal::kLibraryField, internal::kBytesType)) continue;
    bool changed = false;
    std::string library, bytes;
    for (internal::WireReader part(field.bytes()); part.Next();) {
      const bool is_next = next != functions_->end() &&
                           next->bytes.data() == part.bytes().data();
      if (is_next && next->body.changed()) {
        internal::AppendField(library, internal::kFunctionInLibrary,
                              next->body.ToString());
        changed = true;
      } else {
        library.append(part.field().data(), part.field().size());
      }
      if (is_next) ++next;
    }
    if (!changed) continue;
    internal::AppendField(bytes, internal::kLibraryField, library);
    core_->overlay().patches().PushBack(
        {static_cast<uint32_t>(field.field().data() - core_->bytes().data()),
         static_cast<uint32_t>(field.field().size()), core_->Keep(bytes)});
  }
}

inline size_t Graph::ByteSize() {
  core_->overlay().patches().clear();
  if (functions_ != nullptr) PatchLibraries();
  return internal::GraphWriter(*core_).ByteSize();
}

inline absl::StatusOr<NodeList> Graph::TopologicalOrder() {
  internal::TopologicalSort sort(*core_);
  absl::Status status = sort.Run();
  if (!status.ok()) return status;
  return NodeList(core_.get(), sort.order().data(), sort.order().size());
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
  if (!name.empty() && !FindNode(name)) return name;
  int& suffix = suffixes_[name];
  do {
    name = absl::StrCat(prefix, "_", ++suffix);
  } while (FindNode(name));
  return name;
}

inline absl::Status Graph::RemoveNode(Node node) {
  if (auto status = CheckNode(node, "RemoveNode"); !status.ok()) return status;
  if (core_->is_boundary(node.id())) {
    return absl::FailedPreconditionError(
        absl::StrCat("RemoveNode: node '", node.name(), "' (", node.op(),
                     ") is an argument or result of the function"));
  }
  if (node.num_uses() > 0) {
    for (Use use : node.uses()) {
      if (use.node == node) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("RemoveNode: node '", node.name(), "' (", node.op(),
                       ") is still used by '", use.node.name(), "'"));
    }
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
  functions_.reset();
  suffixes_.clear();
  replacement_ = std::move(bytes);
  return absl::OkStatus();
}

}  // namespace tfplug

#endif  // TFPLUG_GRAPH_GRAPH_H_
