// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_GRAPH_STATE_H_
#define TFPLUG_GRAPH_INTERNAL_GRAPH_STATE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/internal/attr_list.h"
#include "tfplug/graph/internal/attrs.h"
#include "tfplug/graph/internal/edges.h"
#include "tfplug/graph/internal/fields.h"
#include "tfplug/graph/internal/index.h"
#include "tfplug/graph/internal/memory.h"
#include "tfplug/graph/internal/names.h"
#include "tfplug/graph/internal/ops.h"
#include "tfplug/graph/internal/overlay.h"

namespace tfplug::internal {

// The inputs of a node, control edges among them, as numbers of edges.
class EdgeNumbers {
 public:
  EdgeNumbers(const InputEdit* edited, uint32_t first, uint32_t size)
      : edited_(edited), first_(first), size_(size) {}
  uint32_t size() const { return size_; }
  uint32_t operator[](uint32_t i) const {
    return edited_ != nullptr ? edited_[i].edge : first_ + i;
  }

 private:
  const InputEdit* edited_;
  uint32_t first_;
  uint32_t size_;
};

// A graph: the index of its bytes, what is made of that on demand, and the
// edits over it. Nodes are numbers; those of the bytes come first, added ones
// follow. This is the reading half; GraphEditor is the other. Neither checks
// anything: Graph and Node do.
class GraphState {
 public:
  void Clear();
  // Of a serialised GraphDef, or of a FunctionDef, whose arguments and results
  // are nodes too: see graph_function.h.
  absl::Status Parse(absl::string_view graph_def);
  absl::Status ParseFunction(absl::string_view function_def);

  absl::string_view bytes() const { return bytes_; }
  uint32_t node_field() const { return is_function_ ? 3 : 1; }
  bool changed() const { return changed_; }
  void MarkChanged() { changed_ = true; }
  // Whether it is more than the processor's nearer caches may hold.
  bool is_large() const { return bytes_.size() > size_t{4} << 20; }
  const absl::Status& status() const { return status_; }
  // Of several problems, the first stays.
  void Note(absl::Status problem) {
    if (status_.ok()) status_ = std::move(problem);
  }

  // What is made on demand: who has a name, where inputs come from, who uses a
  // node.
  void BuildNameIndex() {
    if (ABSL_PREDICT_FALSE(!index_.names.has_table())) MakeNames();
  }
  void NeedEdges() {
    if (ABSL_PREDICT_FALSE(!has_edges_)) MakeEdges();
  }
  void NeedUses() {
    if (ABSL_PREDICT_FALSE(uses_.empty())) MakeUses();
  }

  // ---- Nodes ----

  uint32_t size() const { return index_.num_nodes(); }
  uint32_t num_parsed() const { return num_parsed_; }
  uint32_t num_live() const { return size() - num_removed_; }
  // Whether it stands for an argument or result of a function.
  bool is_boundary(uint32_t n) const { return n - num_parsed_ < num_boundary_; }
  bool live(uint32_t n) const { return index_.ops[n] != kRemoved; }
  absl::string_view name(uint32_t n) const { return index_.names[n]; }
  uint32_t op(uint32_t n) const { return index_.ops[n]; }
  const Array<uint32_t>& ops() const { return index_.ops; }
  NodeRecord record(uint32_t n) const { return index_.records[n]; }
  absl::string_view device(uint32_t n) const;
  uint32_t FindNode(absl::string_view name) {
    BuildNameIndex();
    return index_.names.Find(name);
  }

  OpTable& op_table() { return index_.op_table; }
  uint32_t OpNumber(absl::string_view op) {
    const uint32_t number = op_table().Find(op);
    return number != OpTable::kNone ? number : op_table().Number(Keep(op));
  }

  // ---- Edges ----

  EdgeNumbers inputs(uint32_t n) {
    NeedEdges();
    return MadeInputs(n);
  }
  // Calls f(edge) for the node's inputs, control edges too, until it is true;
  // returns the place of that one, or how many there are.
  template <class F>
  uint32_t FindInput(uint32_t n, const F& f) {
    NeedEdges();
    const NodeEdit* const edit = overlay_.Find(n);
    if (ABSL_PREDICT_FALSE(edit != nullptr) && edit->own_inputs) {
      uint32_t i = 0;
      while (i < edit->input_list.size() &&
             !f(edges_[edit->input_list[i].edge])) {
        ++i;
      }
      return i;
    }
    if (ABSL_PREDICT_FALSE(n >= num_parsed_)) return 0;
    const Edge* const begin = edges_.data() + index_.first_edge(n);
    const Edge* const end = edges_.data() + index_.first_edge(n + 1);
    const Edge* edge = begin;
    while (edge < end && !f(*edge)) ++edge;
    return static_cast<uint32_t>(edge - begin);
  }
  const Edge& edge(uint32_t number) const { return edges_[number]; }
  UseLists& uses() {
    NeedUses();
    return uses_;
  }
  // After uses(): calls f(source) for each input, control edges too, that comes
  // from a node.
  template <class F>
  void ForEachSource(uint32_t n, const F& f) const {
    const NodeEdit* const edit = overlay_.Find(n);
    if (ABSL_PREDICT_FALSE(edit != nullptr) && edit->own_inputs) {
      for (const InputEdit& input : edit->input_list) {
        const uint32_t source = edges_[input.edge].source;
        if (source != kNoNode) f(source);
      }
    } else if (ABSL_PREDICT_TRUE(n < num_parsed_)) {
      const Edge* const end = edges_.data() + index_.first_edge(n + 1);
      for (const Edge* edge = edges_.data() + index_.first_edge(n); edge < end;
           ++edge) {
        if (ABSL_PREDICT_TRUE(edge->source != kNoNode)) f(edge->source);
      }
    }
  }
  // After uses(): calls f(user) for each edge from `n`.
  template <class F>
  void ForEachUser(uint32_t n, const F& f) const {
    uses_.ForEach(n, [&](UseEntry use) {
      // Only edits put an end to edges.
      if (ABSL_PREDICT_TRUE(!changed_) || edges_[use.edge].source == n) {
        f(use.user);
      }
    });
  }
  // The number of a port of a function's nodes; `text` is "output:0".
  int32_t BodyPort(absl::string_view text) {
    const uint32_t number = ports_.Find(text);
    return static_cast<int32_t>(
        1 + (number != OpTable::kNone ? number : ports_.Number(Keep(text))));
  }
  bool is_function() const { return is_function_; }
  // What input `i`, control edges counted, says.
  std::string input_text(uint32_t n, uint32_t i) const;

  // ---- Attributes ----

  // The bytes of the attribute's AttrValue; with null data if there is none.
  absl::string_view FindAttr(uint32_t n, absl::string_view name);
  bool FindAttr(uint32_t n, absl::string_view name, AttrEntry* attr);
  // Calls f(name, value) for each attribute, in no order that means something.
  template <class F>
  void ForEachAttr(uint32_t n, const F& f) {
    attrs(n).ForEach(
        [&](const AttrEntry& attr) { f(attr.name(), attr.value()); });
  }
  // All; it holds until the next edit.
  AttrList attrs(uint32_t n);

  // ---- Bytes ----

  // All of the node's bytes behind its inputs that are not edited.
  absl::string_view rest_bytes(uint32_t n) const;
  Overlay& overlay() { return overlay_; }
  // Which node a function's result is, and its field in the FunctionDef.
  struct Result {
    uint32_t node;
    Range field;
  };
  const Array<Result>& results() const { return results_; }
  // For whoever needs one for a moment.
  std::string& scratch() { return scratch_; }
  // A copy that lives as long as the graph.
  absl::string_view Keep(absl::string_view text) {
    return overlay_.arena().Copy(text);
  }

 private:
  friend class GraphEditor;
  friend class GraphPrefetch;
  friend class InputText;
  friend class TopologicalSort;
  static constexpr uint32_t kRemoved = 0xffffffff;  // In place of an op.
  // How many nodes before its turn a node's bytes are asked for.
  static constexpr uint32_t kAhead = 12;

  // Whether nodes of the same op were edited; that of others may say so, too.
  bool MayBeEdited(uint32_t n) const {
    return (edited_ops_ >> index_.ops[n] % 64 & 1) != 0;
  }
  EdgeNumbers MadeInputs(uint32_t n) const {
    const NodeEdit* const edit = overlay_.Find(n);
    if (ABSL_PREDICT_FALSE(edit != nullptr) && edit->own_inputs) {
      return {edit->input_list.begin(), 0, edit->input_list.size()};
    }
    if (ABSL_PREDICT_FALSE(n >= num_parsed_)) return {nullptr, 0, 0};
    const uint32_t first = index_.first_edge(n);
    return {nullptr, first, index_.first_edge(n + 1) - first};
  }
  // Where input 0 begins.
  const char* inputs_begin(uint32_t n) const {
    const NodeEdit* const edit = overlay_.Find(n);
    return ABSL_PREDICT_FALSE(edit != nullptr)
               ? edit->inputs.data()
               : index_.base + index_.records[n].inputs;
  }
  absl::Status Index(absl::string_view bytes);
  void AddBoundary(absl::string_view name, const char* op);
  void AddResult(absl::string_view entry, Range field, bool is_control);
  Reference ParseInput(absl::string_view text) {
    return ABSL_PREDICT_TRUE(!is_function_) ? ParseReference(text)
                                            : ParseBodyReference(text, ports_);
  }
  void MakeNames();
  // Fills edges_ in, reading inputs with `parse`.
  template <class F>
  void Resolve(const F& parse);
  void MakeEdges();
  void MakeUses();
  void NoteDuplicate(uint32_t n);
  void NoteMissing();

  absl::string_view bytes_;
  bool is_function_ = false;
  GraphIndex index_;
  uint32_t num_parsed_ = 0;
  uint32_t num_boundary_ = 0;
  OpTable ports_;  // Of a function: the ports' texts.
  Array<Result> results_;
  uint32_t num_removed_ = 0;
  bool changed_ = false;
  uint64_t edited_ops_ = 0;  // A bit for each number, modulo 64.
  absl::Status status_;

  // Memory of TopologicalSort.
  Array<uint32_t> order_, waiting_;

  bool has_edges_ = false;
  Array<Edge> edges_;
  UseLists uses_;
  Overlay overlay_;
  std::string scratch_;
};

// ---- Implementation ----

inline void GraphState::Clear() {
  bytes_ = {};
  index_.Clear();
  num_parsed_ = num_removed_ = num_boundary_ = 0;
  results_.clear();
  changed_ = has_edges_ = false;
  edited_ops_ = 0;
  status_ = absl::OkStatus();
  edges_.clear();
  uses_.Clear();
  overlay_.Clear();
}

inline absl::Status GraphState::Parse(absl::string_view graph_def) {
  Clear();
  is_function_ = false;
  return Index(graph_def);
}

inline absl::Status GraphState::Index(absl::string_view bytes) {
  if (bytes.size() > INT32_MAX) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a graph of ", bytes.size(),
        " bytes: TensorFlow cannot read more than 2147483647; keep large "
        "constants in variables"));
  }
  bytes_ = bytes;
  absl::Status status = index_.Build(bytes, node_field(), overlay_.arena());
  if (!status.ok()) return status;
  num_parsed_ = size();
  for (const DisorderedNode& node : index_.disordered) {
    NodeFields fields;
    FindFields(node.in_order.data(),
               node.in_order.data() + node.in_order.size(), &fields);
    index_.names.Set(node.node, fields.name);
    NodeEdit& edit = overlay_.Add(node.node, size());
    edit.inputs = absl::string_view(
        fields.inputs, static_cast<size_t>(fields.rest - fields.inputs));
    edit.rest = absl::string_view(
        fields.rest, static_cast<size_t>(fields.end - fields.rest));
  }
  return absl::OkStatus();
}

inline absl::string_view GraphState::rest_bytes(uint32_t n) const {
  if (const NodeEdit* edit = overlay_.Find(n)) return edit->rest;
  if (n >= num_parsed_) return {};
  return index_.rest(n);
}

inline absl::string_view GraphState::device(uint32_t n) const {
  const NodeEdit* const edit = overlay_.Find(n);
  if (edit != nullptr && edit->own_device) return edit->device;
  const absl::string_view rest = rest_bytes(n);
  absl::string_view device("", 0);
  PassField(rest.data(), rest.data() + rest.size(), kDeviceTag, &device);
  return device;
}

// ---- Attributes ----

inline bool GraphState::FindAttr(uint32_t n, absl::string_view name,
                                 AttrEntry* attr) {
  const NodeEdit* const edit = overlay_.Find(n);
  if (edit != nullptr && edit->own_attrs) {
    const AttrEntry* const found = edit->attrs.Find(name);
    if (found != nullptr) *attr = *found;
    return found != nullptr;
  }
  // Of several with this name the last counts.
  bool found = false;
  ReadAttrs(rest_bytes(n), overlay_.arena(), [&](const AttrEntry& entry) {
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
  attrs.Read(rest_bytes(n), overlay_.arena(), &ignored);
  return attrs;
}

// ---- What is made on demand ----

inline void GraphState::NoteDuplicate(uint32_t n) {
  Note(absl::InvalidArgumentError(
      absl::StrCat("two nodes are called '", name(n), "'")));
}

inline void GraphState::MakeNames() {
  // Nobody refers to a result of a function.
  const uint32_t first_result = results_.empty() ? size() : results_[0].node;
  index_.names.MakeTable(
      [&](uint32_t n) {
        return live(n) && n - first_result >= results_.size();
      },
      [this](uint32_t n) { NoteDuplicate(n); });
}

template <class F>
void GraphState::Resolve(const F& parse) {
  NodeNames::Search search(index_.names);
  Edge* edge = edges_.data();
  for (uint32_t n = 0; n < num_parsed_; ++n) {
    if (n + kAhead < num_parsed_) {
      const char* const soon = index_.base + index_.records[n + kAhead].inputs;
      Prefetch(soon);
      Prefetch(soon + 64);
    }
    const char* p = inputs_begin(n);
    const uint32_t count = index_.first_edge(n + 1) - index_.first_edge(n);
    for (const Edge* const end = edge + count; edge < end; ++edge) {
      const Reference reference = parse(NextInput(&p));
      edge->port = reference.port;
      search.Add(reference.name, &edge->source);
    }
  }
  search.Finish();
  if (ABSL_PREDICT_FALSE(search.missing() > 0)) NoteMissing();
}

inline void GraphState::MakeEdges() {
  BuildNameIndex();
  has_edges_ = true;
  edges_.Resize(index_.first_edge(num_parsed_));
  if (ABSL_PREDICT_FALSE(is_function_)) {
    Resolve([this](absl::string_view text) { return ParseInput(text); });
  } else {
    Resolve([](absl::string_view text) { return ParseReference(text); });
  }
  for (const Result& result : results_) {
    InputEdit& input = overlay_.Find(result.node)->input_list[0];
    const Reference reference = ParseInput(input.text());
    input.edge = static_cast<uint32_t>(edges_.size());
    edges_.PushBack({index_.names.Find(reference.name), reference.port});
  }
}

inline void GraphState::NoteMissing() {
  for (uint32_t n = 0; n < num_parsed_; ++n) {
    const char* p = inputs_begin(n);
    for (uint32_t e = index_.first_edge(n); e < index_.first_edge(n + 1); ++e) {
      const absl::string_view text = NextInput(&p);
      if (edges_[e].source != kNoNode) continue;
      return Note(absl::InvalidArgumentError(absl::StrCat(
          "node '", name(n), "' has the input '", text,
          "', but there is no node '", ParseInput(text).name, "'")));
    }
  }
}

inline void GraphState::MakeUses() {
  NeedEdges();
  uses_.Build(index_.records, size(), num_parsed_, edges_);
  for (const Result& result : results_) {
    const uint32_t edge = overlay_.Find(result.node)->input_list[0].edge;
    const uint32_t source = edges_[edge].source;
    if (source != kNoNode) uses_.Add(source, {result.node, edge});
  }
}

}  // namespace tfplug::internal

#endif  // TFPLUG_GRAPH_INTERNAL_GRAPH_STATE_H_
