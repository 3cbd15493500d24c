// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_GRAPH_STATE_H_
#define TFPLUG_GRAPH_INTERNAL_GRAPH_STATE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/internal/attr_entry.h"
#include "tfplug/graph/internal/attr_list.h"
#include "tfplug/graph/internal/graph_index.h"
#include "tfplug/graph/internal/input_list.h"
#include "tfplug/graph/internal/memory.h"
#include "tfplug/graph/internal/node_names.h"
#include "tfplug/graph/internal/op_table.h"
#include "tfplug/graph/internal/overlay.h"
#include "tfplug/graph/internal/reference.h"
#include "tfplug/graph/internal/use_lists.h"

#pragma GCC visibility push(hidden)

namespace tfplug::graph_internal {

// The data of a graph: the index of its bytes, the tables that are built from
// the index on demand (graph_tables.h), and the edits. Nodes are identified by
// their index: parsed nodes come first, then arguments and results of a
// function, then added nodes. This class reads, and GraphEditor edits. Both
// rely on Graph and Node to validate arguments.
class GraphState {
 public:
  void Clear();
  // Parses a serialized GraphDef, or a FunctionDef, whose arguments and results
  // become nodes too: see function_body.h.
  absl::Status Parse(absl::string_view graph_def);
  absl::Status ParseFunction(absl::string_view function_def);

  absl::string_view bytes() const { return bytes_; }
  bool is_function() const { return is_function_; }
  // Returns the number of the field that holds the nodes.
  uint32_t node_field() const { return is_function_ ? 3 : 1; }
  bool changed() const { return changed_; }
  void MarkChanged() { changed_ = true; }
  // Returns whether the graph probably exceeds the processor's L1 and L2
  // caches.
  bool is_large() const { return bytes_.size() > size_t{4} << 20; }
  const absl::Status& status() const { return status_; }
  // Returns whether the edges are those of the parsed nodes, and none is
  // missing.
  bool is_plain() const { return !changed_ && !is_function_ && !has_missing_; }
  // Records a problem with the graph; only the first one is kept.
  void Note(absl::Status problem) {
    if (status_.ok()) status_ = std::move(problem);
  }

  // Build the tables of names, edges, numbers of uses, and uses, unless they
  // exist.
  void EnsureNames() {
    if (ABSL_PREDICT_FALSE(!index_.names.has_table())) BuildNames();
  }
  void EnsureEdges() {
    if (ABSL_PREDICT_FALSE(!has_edges_)) BuildEdges();
  }
  void EnsureUseCounts() {
    if (ABSL_PREDICT_FALSE(!uses_.has_counts())) BuildUseCounts();
  }
  void EnsureUses() {
    if (ABSL_PREDICT_FALSE(!uses_.has_lists())) BuildUses();
  }

  // ---- Nodes ----

  static constexpr uint32_t kRemoved = 0xffffffff;  // As the op of a node.
  uint32_t size() const { return index_.num_nodes(); }
  uint32_t num_parsed() const { return num_parsed_; }
  uint32_t num_live() const { return size() - num_removed_; }
  // Returns whether the node represents an argument or result of a function.
  bool is_boundary(uint32_t n) const { return n - num_parsed_ < num_boundary_; }
  bool live(uint32_t n) const { return index_.ops[n] != kRemoved; }
  absl::string_view name(uint32_t n) const { return index_.names[n]; }
  uint32_t op(uint32_t n) const { return index_.ops[n]; }
  const Array<uint32_t>& ops() const { return index_.ops; }
  NodeRecord record(uint32_t n) const { return index_.records[n]; }
  absl::string_view device(uint32_t n) const;
  uint32_t FindNode(absl::string_view name) {
    EnsureNames();
    return index_.names.Find(name);
  }

  OpTable& op_table() { return index_.op_table; }
  // Returns the op's id, after assigning one if the op is new.
  uint32_t OpId(absl::string_view op) {
    const uint32_t id = op_table().Find(op);
    return id != OpTable::kNone ? id : op_table().Intern(CopyToArena(op));
  }

  // ---- Inputs ----

  uint32_t num_inputs(uint32_t n, bool control);
  // Returns the number of data and control inputs before any edit.
  uint32_t num_parsed_inputs(uint32_t n) const {
    return index_.first_edge(n + 1) - index_.first_edge(n);
  }
  // Returns the edge of data or control input `i`, or kNoEdge.
  uint32_t FindInput(uint32_t n, bool control, uint32_t i);
  // Returns the first edge at or after slot `*slot` (see InputList) and sets
  // `*slot` to its slot; kNoEdge at the end.
  uint32_t NextInput(uint32_t n, bool control, uint32_t* slot);
  // Returns the index of a data input among the data inputs of `user`.
  uint32_t InputIndex(uint32_t user, uint32_t edge) const {
    const NodeEdit* const edit = overlay_.Find(user);
    if (ABSL_PREDICT_FALSE(edit != nullptr) && edit->own_inputs) {
      return edit->inputs.IndexOf(SlotOf(user, edge, *edit));
    }
    return edge - index_.first_edge(user);
  }

  const Edge& edge(uint32_t edge) const { return edges_[edge]; }
  uint32_t num_uses(uint32_t n) {
    EnsureUseCounts();
    return uses_.count(n);
  }
  UseLists& uses() {
    EnsureUses();
    return uses_;
  }
  // Calls f(source) for each data and control input that comes from a node.
  // Requires an earlier call to EnsureEdges().
  template <class F>
  void ForEachSource(uint32_t n, const F& f) const {
    const NodeEdit* const edit = overlay_.Find(n);
    if (ABSL_PREDICT_FALSE(edit != nullptr) && edit->own_inputs) {
      for (const InputList* list : {&edit->inputs, &edit->controls}) {
        for (const InputEdit& input : *list) {
          if (input.edge == kNoEdge) continue;
          const uint32_t source = edges_[input.edge].source;
          if (source != kNoNode) f(source);
        }
      }
    } else if (ABSL_PREDICT_TRUE(n < num_parsed_)) {
      const Edge* const end = edges_.data() + index_.first_edge(n + 1);
      for (const Edge* edge = edges_.data() + index_.first_edge(n); edge < end;
           ++edge) {
        if (ABSL_PREDICT_TRUE(edge->source != kNoNode)) f(edge->source);
      }
    }
  }
  // Calls f(user) for each edge from `n`. Requires an earlier call to
  // EnsureUses().
  template <class F>
  void ForEachUser(uint32_t n, const F& f) const {
    uses_.ForEach(n, [&](UseEntry use) {
      // In an unedited graph, no edge has ended.
      if (ABSL_PREDICT_TRUE(!changed_) || edges_[use.edge].source == n) {
        f(use.user);
      }
    });
  }
  // Returns the port of a node in a function's body; `text` is "output:0".
  int32_t BodyPort(absl::string_view text) {
    const uint32_t id = ports_.Find(text);
    return static_cast<int32_t>(
        1 + (id != OpTable::kNone ? id : ports_.Intern(CopyToArena(text))));
  }
  // Returns the text of a port of a function's body.
  absl::string_view body_port(int32_t port) const {
    return ports_.op(static_cast<uint32_t>(port - 1));
  }
  // Parses the text of an input.
  Reference ParseInput(absl::string_view text) {
    return ABSL_PREDICT_TRUE(!is_function_) ? ParseReference(text)
                                            : ParseBodyReference(text, ports_);
  }

  // Returns whether the input text `name` refers to output 0 of the node
  // `name`.
  bool IsPlainName(absl::string_view name) const {
    if (is_function_) {
      return !name.empty() && name[0] != '^' && name.find(':') == name.npos;
    }
    // Most names do not end with a digit, and so have no port.
    if (!name.empty() && name[0] != '^' &&
        static_cast<unsigned char>(name.back() - '0') > 9) {
      return true;
    }
    const Reference reference = ParseReference(name);
    return reference.port == 0 && reference.name.size() == name.size();
  }

  // Returns INVALID_ARGUMENT if a new node cannot have this name.
  absl::Status CheckName(absl::string_view name);

  // ---- Attributes ----

  // Returns the bytes of the attribute's AttrValue; null data if there is none.
  absl::string_view FindAttr(uint32_t n, absl::string_view name);
  bool FindAttr(uint32_t n, absl::string_view name, AttrEntry* attr);
  // Calls f(name, value) for each attribute, in an unspecified order.
  template <class F>
  void ForEachAttr(uint32_t n, const F& f) {
    attrs(n).ForEach(
        [&](const AttrEntry& attr) { f(attr.name(), attr.value()); });
  }
  // Returns all attributes. Valid until the next edit.
  AttrList attrs(uint32_t n);

  // ---- Bytes ----

  // Returns the unedited bytes of the node that follow its inputs.
  absl::string_view tail_bytes(uint32_t n) const;
  Overlay& overlay() { return overlay_; }
  // A function's result: its node, and its field in the FunctionDef.
  struct Result {
    uint32_t node;
    ByteRange field;
  };
  const Array<Result>& results() const { return results_; }
  // The size of the written graph in bytes; kUnknownSize if it was not computed
  // since the last edit.
  static constexpr size_t kUnknownSize = ~size_t{0};
  size_t byte_size() const { return byte_size_; }
  void set_byte_size(size_t size) { byte_size_ = size; }
  // Returns a buffer for temporary use within one call.
  std::string& scratch() { return scratch_; }
  // Returns a copy that lives as long as the graph.
  absl::string_view CopyToArena(absl::string_view text) {
    return overlay_.arena().Copy(text);
  }

 private:
  friend class GraphEditor;
  friend class GraphPrefetch;
  friend class NodePrefetch;
  friend class OpPrefetch;
  friend class TopologicalSort;
  // The prefetch distance of texts, in nodes or edges.
  static constexpr uint32_t kAhead = 24;

  // Returns whether a node with this op was edited; false positives are
  // possible.
  bool MayBeEdited(uint32_t op) const {
    return (edited_ops_ >> op % 64 & 1) != 0;
  }
  uint32_t num_parsed_edges() const { return index_.first_edge(num_parsed_); }
  // Returns the first control edge of a parsed node.
  uint32_t FirstControl(uint32_t n) const {
    const uint32_t end = index_.first_edge(n + 1);
    const uint32_t begin = index_.first_edge(n);
    if (begin == end || edges_[end - 1].port != kControlPort) return end;
    const Edge* const first = std::partition_point(
        edges_.data() + begin, edges_.data() + end,
        [](const Edge& edge) { return edge.port != kControlPort; });
    return static_cast<uint32_t>(first - edges_.data());
  }
  // Returns the slot of a node's edge in the lists of the node's edit.
  uint32_t SlotOf(uint32_t n, uint32_t edge, const NodeEdit& edit) const {
    if (edge >= num_parsed_edges()) {
      return added_edges_[edge - num_parsed_edges()].slot;
    }
    return edge - index_.first_edge(n) -
           (edges_[edge].port == kControlPort ? edit.num_parsed_inputs : 0);
  }
  void AddEdge(Edge edge, AddedEdge added) {
    edges_.PushBack(edge);
    added_edges_.PushBack(added);
  }
  // Returns the bytes that begin with input 0.
  const char* input_bytes(uint32_t n) const {
    const NodeEdit* const edit = overlay_.Find(n);
    return ABSL_PREDICT_FALSE(edit != nullptr)
               ? edit->input_bytes.data()
               : index_.base + index_.records[n].inputs;
  }
  absl::Status Index(absl::string_view bytes);
  void AddBoundary(absl::string_view name, const char* op);
  void AddResult(absl::string_view entry, ByteRange field, bool is_control);
  void BuildNames();
  template <class F>
  void Resolve(const F& parse);
  template <bool kIsSmall, class F>
  void ResolveByHash(const F& parse);
  template <class F>
  void ResolveOneByOne(const F& parse);
  void PutControlsLast(uint32_t num_controls);
  void BuildEdges();
  void BuildUseCounts();
  void BuildUses();
  void NoteDuplicate(uint32_t n);
  void NoteMissing();

  absl::string_view bytes_;
  bool is_function_ = false;
  GraphIndex index_;
  uint32_t num_parsed_ = 0;
  uint32_t num_boundary_ = 0;
  OpTable ports_;  // The texts of a function's ports.
  Array<Result> results_;
  uint32_t num_removed_ = 0;
  bool changed_ = false;
  size_t byte_size_ = kUnknownSize;
  uint64_t edited_ops_ = 0;  // Bit i: a node was edited whose op % 64 is i.
  absl::Status status_;

  // Memory for TopologicalSort.
  Array<uint32_t> order_, waiting_;

  bool has_edges_ = false;
  bool has_missing_ = false;  // Whether the source of a parsed edge is missing.
  // The edges of the parsed nodes, each node's data edges before its control
  // edges, followed by the added edges.
  Array<Edge> edges_;
  Array<AddedEdge> added_edges_;
  // The nodes in whose bytes a data input follows a control input.
  std::vector<uint32_t> mixed_;
  UseLists uses_;
  Overlay overlay_;
  std::string scratch_;
};

// ---- Implementation ----

inline uint32_t GraphState::num_inputs(uint32_t n, bool control) {
  EnsureEdges();
  const NodeEdit* const edit = overlay_.Find(n);
  if (ABSL_PREDICT_FALSE(edit != nullptr) && edit->own_inputs) {
    return (control ? edit->controls : edit->inputs).size();
  }
  if (ABSL_PREDICT_FALSE(n >= num_parsed_)) return 0;
  const uint32_t middle = FirstControl(n);
  return control ? index_.first_edge(n + 1) - middle
                 : middle - index_.first_edge(n);
}

inline uint32_t GraphState::FindInput(uint32_t n, bool control, uint32_t i) {
  EnsureEdges();
  const NodeEdit* const edit = overlay_.Find(n);
  if (ABSL_PREDICT_FALSE(edit != nullptr) && edit->own_inputs) {
    const InputList& list = control ? edit->controls : edit->inputs;
    return i < list.size() ? list[list.SlotOf(i)].edge : kNoEdge;
  }
  if (ABSL_PREDICT_FALSE(n >= num_parsed_)) return kNoEdge;
  const uint32_t begin = control ? FirstControl(n) : index_.first_edge(n);
  if (i >= index_.first_edge(n + 1) - begin) return kNoEdge;
  return control || edges_[begin + i].port != kControlPort ? begin + i
                                                           : kNoEdge;
}

inline uint32_t GraphState::NextInput(uint32_t n, bool control,
                                      uint32_t* slot) {
  EnsureEdges();
  const NodeEdit* const edit = overlay_.Find(n);
  if (edit == nullptr || !edit->own_inputs) return FindInput(n, control, *slot);
  const InputList& list = control ? edit->controls : edit->inputs;
  for (; *slot < list.num_slots(); ++*slot) {
    if (list[*slot].edge != kNoEdge) return list[*slot].edge;
  }
  return kNoEdge;
}

inline absl::string_view GraphState::tail_bytes(uint32_t n) const {
  if (const NodeEdit* edit = overlay_.Find(n)) return edit->tail;
  if (n >= num_parsed_) return {};
  return index_.tail(n);
}

inline absl::string_view GraphState::device(uint32_t n) const {
  const NodeEdit* const edit = overlay_.Find(n);
  if (edit != nullptr && edit->own_device) return edit->device;
  const absl::string_view tail = tail_bytes(n);
  absl::string_view device("", 0);
  PassField(tail.data(), tail.data() + tail.size(), kDeviceTag, &device);
  return device;
}

inline bool GraphState::FindAttr(uint32_t n, absl::string_view name,
                                 AttrEntry* attr) {
  const NodeEdit* const edit = overlay_.Find(n);
  if (edit != nullptr && edit->own_attrs) {
    const AttrEntry* const found = edit->attrs.Find(name);
    if (found != nullptr) *attr = *found;
    return found != nullptr;
  }
  // The last of several attributes with this name wins.
  bool found = false;
  ReadAttrs(tail_bytes(n), overlay_.arena(), [&](const AttrEntry& entry) {
    if (!SameText(entry.name(), name)) return;
    *attr = entry;
    found = true;
  });
  return found;
}
inline absl::string_view GraphState::FindAttr(uint32_t n,
                                              absl::string_view name) {
  AttrEntry attr;
  return FindAttr(n, name, &attr) ? attr.value() : absl::string_view();
}
inline AttrList GraphState::attrs(uint32_t n) {
  const NodeEdit* const edit = overlay_.Find(n);
  if (edit != nullptr && edit->own_attrs) return edit->attrs;
  AttrList attrs;
  uint32_t ignored;
  attrs.Read(tail_bytes(n), overlay_.arena(), &ignored);
  return attrs;
}

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_GRAPH_STATE_H_
