// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_GRAPH_H_
#define TFPLUG_GRAPH_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/graph/internal/editor.h"
#include "tfplug/graph/internal/function_body.h"
#include "tfplug/graph/internal/graph_state.h"
#include "tfplug/graph/internal/topological_sort.h"
#include "tfplug/graph/internal/writer.h"
#include "tfplug/graph/node.h"
#include "tfplug/graph/ranges.h"
#ifndef TFPLUG_SEPARATE
#include "tfplug/graph/internal/graph_tables.h"
#endif

#pragma GCC visibility push(hidden)

namespace tfplug {

struct GraphFunction;

// Memory for a Graph's tables. A Graph returns the memory when it is destroyed,
// and the next one reuses it; Graphs that exist at the same time do not share
// it. Must outlive the Graphs that use it. Not thread-safe.
class GraphWorkspace {
 public:
  GraphWorkspace() = default;

 private:
  friend class Graph;
  std::unique_ptr<graph_internal::GraphState> spare_;
};

// A serialized GraphDef with edits, which are stored separately from its bytes.
// Not thread-safe.
class Graph {
 public:
  // Constructs a graph without nodes.
  Graph() : Graph(nullptr) {}
  // Parses a serialized GraphDef, whose bytes must outlive the Graph.
  // INVALID_ARGUMENT if the bytes are malformed, or if there are more than
  // 2^31 - 1 of them, which is TensorFlow's limit.
  //
  // Parsing makes one pass over the bytes, which finds names and ops. The
  // tables of names, inputs and uses, and the topological order, are built for
  // all nodes together when one is first needed.
  static absl::StatusOr<Graph> Parse(absl::string_view graph_def,
                                     GraphWorkspace* workspace = nullptr) {
    Graph graph(workspace);
    absl::Status status = graph.state_->Parse(graph_def);
    if (!status.ok()) return status;
    return graph;
  }
  // Parses a temporary string, such as the result of another graph's
  // ToString(). The Graph owns the string afterwards.
  template <class String,
            class = std::enable_if_t<std::is_same_v<String, std::string>>>
  static absl::StatusOr<Graph> Parse(String&& graph_def,
                                     GraphWorkspace* workspace = nullptr) {
    auto bytes =
        std::make_unique<const std::string>(std::forward<String>(graph_def));
    absl::StatusOr<Graph> graph = Parse(absl::string_view(*bytes), workspace);
    if (graph.ok()) graph->owned_bytes_ = std::move(bytes);
    return graph;
  }
  // Nodes stay valid when their Graph is moved.
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  int64_t num_nodes() const { return state_->num_live(); }
  // Returns the exclusive upper bound of Node::id(). Ids are never reused.
  uint32_t max_id() const { return state_->size(); }
  bool has_op(absl::string_view op) const {
    const uint32_t id = state_->op_table().Find(op);
    return id != graph_internal::OpTable::kNone &&
           state_->op_table().count(id) > 0;
  }
  // Returns the id of an op, which is the op_id() of its nodes, including nodes
  // that are added later.
  uint32_t OpId(absl::string_view op) { return state_->OpId(op); }
  NodeRange nodes() const {
    return internal::Access::Construct<NodeRange>(state_.get());
  }
  OpRange nodes(absl::string_view op) {
    return internal::Access::Construct<OpRange>(state_.get(), OpId(op));
  }
  // Returns the node of this name, or a null Node.
  Node FindNode(absl::string_view name) const {
    const uint32_t n = state_->FindNode(name);
    return n == graph_internal::kNoNode ? Node() : NodeAt(n);
  }
  // Sorts the nodes so that each follows the sources of its inputs and control
  // inputs. Ignores the edges from NextIteration to Merge, which close loops.
  // Keeps the order of the GraphDef if it is already sorted.
  // INVALID_ARGUMENT, naming the nodes, if there is a cycle. The list is valid
  // until the next call.
  absl::StatusOr<NodeList> TopologicalOrder();

  // Parses the bodies of the functions in the graph's library. They can be
  // edited as graphs, and the edits become part of this graph. For tools and
  // tests: TensorFlow passes only signatures to plug-ins, and optimizes each
  // body in a separate call. A malformed function is omitted from the result
  // and reported by status().
  std::vector<GraphFunction>& GetFunctions();

  // ---- Edits ----
  // A failed edit leaves the graph unchanged, and its status names the node.

  // Adds a node without inputs and attributes. ALREADY_EXISTS if the name is
  // taken; INVALID_ARGUMENT if it is empty, or if inputs could not refer to it,
  // such as "a:1" or "^a".
  absl::StatusOr<Node> AddNode(absl::string_view name, absl::string_view op);
  // Returns `prefix`, or the first free name of `prefix`_1, `prefix`_2, ...
  std::string UniqueName(absl::string_view prefix);
  // Removes a node and its inputs. FAILED_PRECONDITION, naming a user, if
  // another node uses it.
  absl::Status RemoveNode(Node node);
  // Redirects the data inputs that come from `from` to `to`, except for inputs
  // of `to`'s own node, so that this node can be inserted after `from`.
  absl::Status ReplaceUses(Output from, Output to);
  // Redirects all data inputs that come from an output of `from` to the same
  // output of `to`, and all control inputs that come from `from` to `to`,
  // except for inputs of `to` itself.
  absl::Status ReplaceNode(Node from, Node to);
  // Replaces the whole graph with another serialized GraphDef, which the Graph
  // then owns. Invalidates all nodes. Fails like Parse().
  absl::Status Replace(std::string graph_def);

  // ---- Result ----

  // Returns whether the graph or a function's body was edited.
  bool changed() const;
  // Returns the first problem found so far. INVALID_ARGUMENT: two nodes have
  // the same name, or an input refers to a missing node; TensorFlow would
  // reject such a graph. RESOURCE_EXHAUSTED: see Check().
  const absl::Status& status() const { return state_->status(); }
  // Validates the graph before it is written: all names; after Replace(), also
  // all inputs; after edits, also the size. RESOURCE_EXHAUSTED if the size
  // exceeds 2^31 - 1 bytes. Returns status().
  const absl::Status& Check();
  // Returns the size of the edited GraphDef in bytes.
  size_t ByteSize();
  // Writes exactly ByteSize() bytes to `to`. Requires a call to ByteSize()
  // after the last edit.
  void WriteTo(char* to) { graph_internal::GraphWriter(*state_).Write(to); }
  std::string ToString() {
    std::string bytes(ByteSize(), '\0');
    WriteTo(&bytes[0]);
    return bytes;
  }

 private:
  explicit Graph(GraphWorkspace* workspace) : workspace_(workspace) {
    if (workspace != nullptr) state_ = std::move(workspace->spare_);
    if (state_ == nullptr)
      state_ = std::make_unique<graph_internal::GraphState>();
    state_->Clear();
  }
  void ReturnMemory() {
    if (workspace_ != nullptr && state_ != nullptr) {
      workspace_->spare_ = std::move(state_);
    }
  }
  Node NodeAt(uint32_t id) const {
    return internal::Access::Construct<Node>(state_.get(), id);
  }
  bool Has(Node node) const {
    return internal::Access::state(node) == state_.get();
  }
  absl::Status CheckNode(Node node, const char* edit) const;
  // Adds patches for the function libraries whose functions were edited.
  void PatchLibraries();

  std::unique_ptr<graph_internal::GraphState> state_;
  GraphWorkspace* workspace_;
  std::unique_ptr<const std::string> owned_bytes_;
  bool is_replaced_ = false;
  std::unique_ptr<std::vector<GraphFunction>> functions_;
  std::unordered_map<std::string, int> suffixes_;  // Used by UniqueName().
};

// A function in a graph's library. In its body, arguments are nodes of op _Arg
// and results are nodes of op _Retval with one input; these cannot be removed.
// Output ports have names: see Node::NamedOutput().
struct GraphFunction {
  absl::string_view name;
  Graph body;
  absl::string_view bytes;  // The original FunctionDef.
};

// ---- Implementation ----

inline Graph::Graph(Graph&&) noexcept = default;
inline Graph& Graph::operator=(Graph&& other) noexcept {
  if (this != &other) {
    ReturnMemory();
    state_ = std::move(other.state_);
    workspace_ = other.workspace_;
    owned_bytes_ = std::move(other.owned_bytes_);
    is_replaced_ = other.is_replaced_;
    functions_ = std::move(other.functions_);
    suffixes_ = std::move(other.suffixes_);
  }
  return *this;
}
inline Graph::~Graph() { ReturnMemory(); }

// ---- Functions ----

inline std::vector<GraphFunction>& Graph::GetFunctions() {
  if (functions_ != nullptr) return *functions_;
  functions_ = std::make_unique<std::vector<GraphFunction>>();
  for (internal::WireReader field(state_->bytes()); field.Next();) {
    if (!field.Is(graph_internal::kLibraryField, internal::kBytesType))
      continue;
    for (internal::WireReader part(field.bytes()); part.Next();) {
      if (!part.Is(graph_internal::kFunctionInLibrary, internal::kBytesType))
        continue;
      Graph body;
      absl::Status status = body.state_->ParseFunction(part.bytes());
      if (!status.ok()) {
        state_->Note(std::move(status));
        continue;
      }
      functions_->push_back({graph_internal::FunctionDefName(part.bytes()),
                             std::move(body), part.bytes()});
    }
  }
  return *functions_;
}

inline void Graph::PatchLibraries() {
  auto next = functions_->begin();
  for (internal::WireReader field(state_->bytes()); field.Next();) {
    if (!field.Is(graph_internal::kLibraryField, internal::kBytesType))
      continue;
    bool changed = false;
    std::string library, bytes;
    for (internal::WireReader part(field.bytes()); part.Next();) {
      const bool is_next = next != functions_->end() &&
                           next->bytes.data() == part.bytes().data();
      if (is_next && next->body.changed()) {
        internal::AppendField(library, graph_internal::kFunctionInLibrary,
                              next->body.ToString());
        changed = true;
      } else {
        library.append(part.field().data(), part.field().size());
      }
      if (is_next) ++next;
    }
    if (!changed) continue;
    internal::AppendField(bytes, graph_internal::kLibraryField, library);
    state_->overlay().patches().PushBack(
        {static_cast<uint32_t>(field.field().data() - state_->bytes().data()),
         static_cast<uint32_t>(field.field().size()),
         state_->CopyToArena(bytes)});
  }
}

// ---- Result ----

inline bool Graph::changed() const {
  if (state_->changed()) return true;
  if (functions_ == nullptr) return false;
  for (const GraphFunction& function : *functions_) {
    if (function.body.changed()) return true;
  }
  return false;
}

inline const absl::Status& Graph::Check() {
  state_->EnsureNames();
  if (is_replaced_) state_->EnsureEdges();
  if (!status().ok() || !changed()) return status();
  const size_t size = ByteSize();
  if (size > INT32_MAX) {
    state_->Note(absl::ResourceExhaustedError(absl::StrCat(
        "the edited graph has ", size,
        " bytes, but TensorFlow cannot read more than 2147483647; keep large "
        "constants in variables")));
  }
  return status();
}

inline size_t Graph::ByteSize() {
  const size_t known = state_->byte_size();
  if (functions_ == nullptr &&
      known != graph_internal::GraphState::kUnknownSize) {
    return known;
  }
  state_->overlay().patches().clear();
  if (functions_ != nullptr) PatchLibraries();
  return graph_internal::GraphWriter(*state_).ByteSize();
}

inline absl::StatusOr<NodeList> Graph::TopologicalOrder() {
  graph_internal::TopologicalSort sort(*state_);
  absl::Status status = sort.Run();
  if (!status.ok()) return status;
  return internal::Access::Construct<NodeList>(
      state_.get(), sort.order().data(), sort.order().size());
}

// ---- Edits ----

inline absl::Status Graph::CheckNode(Node node, const char* edit) const {
  if (Has(node) && !node.removed()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      edit, ": ",
      !node ? "the node is null"
            : absl::StrCat("node '", node.name(), "' ",
                           Has(node) ? "was removed" : "is in another graph")));
}

inline absl::StatusOr<Node> Graph::AddNode(absl::string_view name,
                                           absl::string_view op) {
  if (FindNode(name)) {
    return absl::AlreadyExistsError(
        absl::StrCat("AddNode: a node '", name,
                     "' already exists; UniqueName() returns a free name"));
  }
  if (absl::Status status = state_->CheckName(name); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("AddNode: ", status.message()));
  }
  return NodeAt(
      graph_internal::GraphEditor(*state_).Add(state_->CopyToArena(name), op));
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
  if (state_->is_boundary(node.id())) {
    return absl::FailedPreconditionError(
        absl::StrCat("RemoveNode: node '", node.name(), "' (", node.op(),
                     ") is an argument or result of the function and cannot "
                     "be removed"));
  }
  if (node.num_uses() > 0) {
    for (Use use : node.uses()) {
      if (use.node == node) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("RemoveNode: node '", node.name(), "' (", node.op(),
                       ") is still used by '", use.node.name(),
                       "'; redirect its uses first, with ReplaceUses() or "
                       "ReplaceNode()"));
    }
  }
  graph_internal::GraphEditor(*state_).Remove(node.id());
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
  graph_internal::GraphEditor(*state_).ReplaceUses(from.node.id(), from.port,
                                                   {to.node.id(), to.port});
  return absl::OkStatus();
}

inline absl::Status Graph::ReplaceNode(Node from, Node to) {
  for (Node node : {from, to}) {
    auto status = CheckNode(node, "ReplaceNode");
    if (!status.ok()) return status;
  }
  if (from == to) return absl::OkStatus();
  graph_internal::GraphEditor(*state_).ReplaceNode(from.id(), to.id());
  return absl::OkStatus();
}

inline absl::Status Graph::Replace(std::string graph_def) {
  absl::StatusOr<Graph> graph = Parse(std::move(graph_def));
  if (!graph.ok()) return graph.status();
  state_ = std::move(graph->state_);
  state_->MarkChanged();
  owned_bytes_ = std::move(graph->owned_bytes_);
  is_replaced_ = true;
  functions_.reset();
  suffixes_.clear();
  return absl::OkStatus();
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_GRAPH_H_
