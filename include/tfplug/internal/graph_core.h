// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_INTERNAL_GRAPH_CORE_H_
#define TFPLUG_INTERNAL_GRAPH_CORE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/internal/graph_edges.h"
#include "tfplug/internal/graph_hash.h"
#include "tfplug/internal/graph_index.h"
#include "tfplug/internal/graph_memory.h"
#include "tfplug/internal/wire.h"

namespace tfplug::internal {

// An input of an edited node: its edge, and the text that it was read from if
// it still says the same.
struct InputEdit {
  uint32_t edge;
  absl::string_view text;
};

// An attribute that was set, or with a null value removed.
struct AttrEdit {
  absl::string_view name;
  absl::string_view value;
};

// What differs in a node from what the index says. `inputs` and `rest` are the
// bytes that stand for all that is not edited: see NodeFields.
struct NodeEdit {
  absl::string_view inputs;
  absl::string_view rest;
  // False in a disordered node that nobody has edited.
  bool dirty = false;
  bool own_inputs = false;
  bool own_device = false;
  uint32_t size = 0;  // Of the node's message; set when it is written.
  ArenaList<InputEdit> input_list;
  absl::string_view device;
  ArenaList<AttrEdit> attrs;
};

// The graph's data: the index, what is made of it on demand, and the edits over
// it. Nodes are numbers; those of the bytes come first, added ones follow. It
// checks nothing: Graph and Node do.
class GraphCore {
 public:
  // ---- Reading ----

  absl::Status Parse(absl::string_view bytes, uint32_t node_field);
  void Clear();

  uint32_t size() const { return index_.num_nodes(); }
  uint32_t num_live() const { return size() - num_removed_; }
  bool live(uint32_t n) const { return index_.ops[n] != kRemoved; }
  absl::string_view name(uint32_t n) const { return index_.names[n]; }
  uint32_t op(uint32_t n) const { return index_.ops[n]; }
  absl::string_view device(uint32_t n) const;
  uint32_t OpNumber(absl::string_view op) {
    const uint32_t number = op_table().Find(op);
    if (number != OpTable::kNone) return number;
    return op_table().Number(Keep(op));
  }
  OpTable& op_table() { return index_.op_table; }
  const OpTable& op_table() const { return index_.op_table; }
  const Array<uint32_t>& ops() const { return index_.ops; }

  uint32_t FindNode(absl::string_view name) {
    MakeNames();
    return index_.names.Find(name);
  }

  // Inputs in the order of the node, control edges among them.
  uint32_t num_edges(uint32_t n) {
    MakeEdges();
    const NodeEdit* const edit = Edit(n);
    if (edit != nullptr && edit->own_inputs) return edit->input_list.size();
    return n < num_parsed_ ? index_.first_edge(n + 1) - index_.first_edge(n)
                           : 0;
  }
  // The number of its edge `i`.
  uint32_t edge_number(uint32_t n, uint32_t i) {
    const NodeEdit* const edit = Edit(n);
    if (edit != nullptr && edit->own_inputs) return edit->input_list[i].edge;
    return index_.first_edge(n) + i;
  }
  const Edge& edge(uint32_t number) const { return edges_[number]; }
  UseLists& uses() {
    MakeUses();
    return uses_;
  }
  // After uses(): calls f(source) for each input, control edges too, that comes
  // from a node.
  template <class F>
  void ForEachSource(uint32_t n, const F& f) const {
    const NodeEdit* const edit = Edit(n);
    if (ABSL_PREDICT_FALSE(edit != nullptr) && edit->own_inputs) {
      for (const InputEdit& input : edit->input_list) {
        if (edges_[input.edge].source != kNoNode) f(edges_[input.edge].source);
      }
    } else if (n < num_parsed_) {
      const uint32_t end = index_.first_edge(n + 1);
      for (uint32_t e = index_.first_edge(n); e < end; ++e) {
        if (ABSL_PREDICT_TRUE(edges_[e].source != kNoNode)) f(edges_[e].source);
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
  // What input `i`, control edges counted, says.
  std::string input_text(uint32_t n, uint32_t i);

  // The bytes of the attribute's AttrValue; with null data if there is none.
  absl::string_view FindAttr(uint32_t n, absl::string_view name);
  // Calls f(name, value) for each attribute, in no order that means something.
  template <class F>
  void ForEachAttr(uint32_t n, const F& f);
  // All of the node's bytes before its inputs, and after, that are not edited.
  absl::string_view inputs_bytes(uint32_t n) const;
  absl::string_view rest_bytes(uint32_t n) const;
  const char* inputs_begin(uint32_t n) const {
    if (const NodeEdit* edit = Edit(n)) return edit->inputs.data();
    return index_.base + index_.records[n].inputs;
  }

  const absl::Status& status() const { return status_; }

  // ---- Editing ----

  bool changed() const { return changed_; }
  void MarkChanged() { changed_ = true; }
  absl::string_view Keep(absl::string_view text) { return arena_.Copy(text); }

  // A node without inputs, device and attributes. The name must be free.
  uint32_t Add(absl::string_view name, absl::string_view op);
  void Remove(uint32_t n);
  void SetName(uint32_t n, absl::string_view name);
  void SetOp(uint32_t n, absl::string_view op);
  void SetDevice(uint32_t n, absl::string_view device);
  // A null value removes it. `value` is not copied, `name` is.
  void SetAttr(uint32_t n, absl::string_view name, absl::string_view value);
  void InsertEdge(uint32_t n, uint32_t at, Edge edge);
  void ReplaceEdge(uint32_t n, uint32_t at, Edge edge);
  void RemoveEdge(uint32_t n, uint32_t at);

  // ---- Writing: graph_writer.h ----

  const GraphIndex& index() const { return index_; }
  uint32_t num_parsed() const { return num_parsed_; }
  absl::string_view bytes() const { return bytes_; }
  uint32_t node_field() const { return node_field_; }
  const NodeEdit* Edit(uint32_t n) const {
    if (edit_of_.size() <= n || edit_of_[n] == 0) return nullptr;
    return edits_[edit_of_[n] - 1];
  }
  const Array<uint32_t>& edit_of() const { return edit_of_; }

 private:
  static constexpr uint32_t kRemoved = 0xffffffff;
  // The node's name in the table of names; noted if another has it.
  void InsertName(uint32_t n);
  void NoteDuplicate(uint32_t n);
  void NoteMissing();
  void MakeNames();
  void MakeEdges();
  void MakeUses();
  // The overlay's entry for `n`, made if there is none.
  NodeEdit& MakeEdit(uint32_t n);
  NodeEdit& MakeDirty(uint32_t n) {
    NodeEdit& edit = MakeEdit(n);
    edit.dirty = changed_ = true;
    return edit;
  }
  // The same, with a list of its inputs.
  NodeEdit& MakeInputs(uint32_t n);
  uint32_t NewEdge(uint32_t user, Edge edge);
  void EndEdge(uint32_t number);
  void Note(absl::Status problem) {
    if (status_.ok()) status_ = std::move(problem);
  }

  absl::string_view bytes_;
  GraphIndex index_;
  uint32_t node_field_ = 1;
  uint32_t num_parsed_ = 0;
  uint32_t num_removed_ = 0;
  bool changed_ = false;
  bool edges_made_ = false;
  absl::Status status_;

  Array<Edge> edges_;
  UseLists uses_;

  Arena arena_;
  Array<uint32_t> edit_of_;  // 0: none.
  Array<NodeEdit*> edits_;
};

// ---- Implementation ----

inline void GraphCore::Clear() {
  bytes_ = {};
  index_.Clear();
  num_parsed_ = num_removed_ = 0;
  changed_ = edges_made_ = false;
  status_ = absl::OkStatus();
  edges_.clear();
  uses_.Clear();
  arena_.Clear();
  edit_of_.clear();
  edits_.clear();
}

inline absl::Status GraphCore::Parse(absl::string_view bytes,
                                     uint32_t node_field) {
  Clear();
  if (bytes.size() > INT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("a graph of ", bytes.size(),
                     " bytes: TensorFlow cannot read more than "
                     "2147483647; keep large constants in variables"));
  }
  bytes_ = bytes;
  node_field_ = node_field;
  absl::Status status = index_.Build(bytes, node_field, arena_);
  if (!status.ok()) return status;
  num_parsed_ = size();
  for (const DisorderedNode& node : index_.disordered) {
    NodeFields fields;
    FindFields(node.in_order.data(),
               node.in_order.data() + node.in_order.size(), &fields);
    index_.names.Set(node.node, fields.name);
    NodeEdit& edit = MakeEdit(node.node);
    edit.inputs = absl::string_view(
        fields.inputs, static_cast<size_t>(fields.rest - fields.inputs));
    edit.rest = absl::string_view(
        fields.rest, static_cast<size_t>(fields.end - fields.rest));
  }
  return absl::OkStatus();
}

inline absl::string_view GraphCore::inputs_bytes(uint32_t n) const {
  if (const NodeEdit* edit = Edit(n)) return edit->inputs;
  if (n >= num_parsed_) return {};
  const NodeRecord record = index_.records[n];
  const uint32_t begin = index_.records[n].inputs;
  return absl::string_view(index_.base + begin,
                           record.begin + record.size - begin);
}

inline absl::string_view GraphCore::rest_bytes(uint32_t n) const {
  if (const NodeEdit* edit = Edit(n)) return edit->rest;
  if (n >= num_parsed_) return {};
  const absl::string_view inputs = inputs_bytes(n);
  const char* p = inputs.data();
  const uint32_t count = index_.first_edge(n + 1) - index_.first_edge(n);
  for (uint32_t i = 0; i < count; ++i) NextInput(&p);
  return absl::string_view(
      p, static_cast<size_t>(inputs.data() + inputs.size() - p));
}

inline absl::string_view GraphCore::device(uint32_t n) const {
  if (const NodeEdit* edit = Edit(n); edit != nullptr && edit->own_device) {
    return edit->device;
  }
  const absl::string_view rest = rest_bytes(n);
  if (rest.empty() ||
      rest[0] != static_cast<char>(MakeTag(kDeviceField, kBytesType))) {
    return {};
  }
  uint32_t size = 0;
  const char* const device =
      ReadLength(rest.data() + 1, rest.data() + rest.size(), &size);
  return absl::string_view(device, size);
}

inline std::string GraphCore::input_text(uint32_t n, uint32_t i) {
  const NodeEdit* const edit = Edit(n);
  if (edit != nullptr && edit->own_inputs) {
    const InputEdit& input = edit->input_list[i];
    if (input.text.data() != nullptr) return std::string(input.text);
    const Edge& from = edges_[input.edge];
    const absl::string_view source = name(from.source);
    if (from.port == kControlPort) return absl::StrCat("^", source);
    if (from.port == 0) return std::string(source);
    return absl::StrCat(source, ":", from.port);
  }
  const char* p = inputs_bytes(n).data();
  while (i-- > 0) NextInput(&p);
  return std::string(NextInput(&p));
}

// ---- Attributes ----

// The parts of an entry of the map of attributes. The value is that of all its
// occurrences one after the other, which is how they merge; `memory` is for the
// rare case that there is more than one.
struct AttrEntry {
  absl::string_view name;
  absl::string_view value;
};
inline AttrEntry ReadAttrEntry(absl::string_view bytes, Arena& memory) {
  AttrEntry entry{{}, absl::string_view("", 0)};
  for (WireReader field(bytes); field.Next();) {
    if (field.Is(1, kBytesType)) entry.name = field.bytes();
    if (!field.Is(2, kBytesType)) continue;
    if (entry.value.empty()) {
      entry.value = field.bytes();
    } else {
      const std::string both = absl::StrCat(entry.value, field.bytes());
      entry.value = memory.Copy(both);
    }
  }
  return entry;
}

inline absl::string_view GraphCore::FindAttr(uint32_t n,
                                             absl::string_view name) {
  if (const NodeEdit* edit = Edit(n)) {
    for (const AttrEdit& attr : edit->attrs) {
      if (attr.name == name) return attr.value;
    }
  }
  absl::string_view found;
  for (WireReader field(rest_bytes(n)); field.Next();) {
    if (!field.Is(kAttrField, kBytesType)) continue;
    const AttrEntry entry = ReadAttrEntry(field.bytes(), arena_);
    if (entry.name == name) found = entry.value;
  }
  return found;
}

template <class F>
void GraphCore::ForEachAttr(uint32_t n, const F& f) {
  const NodeEdit* const edit = Edit(n);
  for (WireReader field(rest_bytes(n)); field.Next();) {
    if (!field.Is(kAttrField, kBytesType)) continue;
    const AttrEntry entry = ReadAttrEntry(field.bytes(), arena_);
    bool edited = false;
    if (edit != nullptr) {
      for (const AttrEdit& attr : edit->attrs) {
        edited = edited || attr.name == entry.name;
      }
    }
    // Of several entries for a name the last counts.
    if (!edited && FindAttr(n, entry.name).data() == entry.value.data()) {
      f(entry.name, entry.value);
    }
  }
  if (edit == nullptr) return;
  for (const AttrEdit& attr : edit->attrs) {
    if (attr.value.data() != nullptr) f(attr.name, attr.value);
  }
}

// ---- What is made on demand ----

inline void GraphCore::NoteDuplicate(uint32_t n) {
  Note(absl::InvalidArgumentError(
      absl::StrCat("two nodes are called '", name(n), "'")));
}

inline void GraphCore::InsertName(uint32_t n) {
  if (!index_.names.HasRoom()) {
    index_.names.DropTable();
    MakeNames();
  } else if (!index_.names.Insert(n)) {
    NoteDuplicate(n);
  }
}

inline void GraphCore::MakeNames() {
  if (index_.names.has_table()) return;
  index_.names.MakeTable([this](uint32_t n) { return live(n); },
                         [this](uint32_t n) { NoteDuplicate(n); });
}

inline void GraphCore::MakeEdges() {
  if (edges_made_) return;
  MakeNames();
  edges_made_ = true;
  edges_.Resize(index_.first_edge(num_parsed_));
  NodeNames::Search search(index_.names);
  Edge* edge = edges_.data();
  Edge* found_edge = edge;
  uint32_t missing = 0;
  const auto found = [&](uint32_t node) {
    (found_edge++)->source = node;
    missing += node == kNoNode;
  };
  for (uint32_t n = 0; n < num_parsed_; ++n) {
    const char* p = inputs_begin(n);
    const uint32_t count = index_.first_edge(n + 1) - index_.first_edge(n);
    for (const Edge* const end = edge + count; edge < end; ++edge) {
      const Reference reference = ParseReference(NextInput(&p));
      edge->port = reference.port;
      search.Add(reference.name, found);
    }
  }
  search.Finish(found);
  if (ABSL_PREDICT_FALSE(missing > 0)) NoteMissing();
}

inline void GraphCore::NoteMissing() {
  for (uint32_t n = 0; n < num_parsed_; ++n) {
    const char* p = inputs_bytes(n).data();
    for (uint32_t e = index_.first_edge(n); e < index_.first_edge(n + 1); ++e) {
      const absl::string_view text = NextInput(&p);
      if (edges_[e].source != kNoNode) continue;
      return Note(absl::InvalidArgumentError(absl::StrCat(
          "node '", name(n), "' has the input '", text,
          "', but there is no node '", ParseReference(text).name, "'")));
    }
  }
}

inline void GraphCore::MakeUses() {
  if (!uses_.empty()) return;
  MakeEdges();
  uses_.Build(index_.records, size(), num_parsed_, edges_);
}

// ---- Edits ----

inline NodeEdit& GraphCore::MakeEdit(uint32_t n) {
  if (edit_of_.size() < size()) edit_of_.Resize(size(), 0);
  if (edit_of_[n] != 0) return *edits_[edit_of_[n] - 1];
  NodeEdit* const edit = new (arena_.Allocate(sizeof(NodeEdit))) NodeEdit;
  if (n < num_parsed_ && index_.records[n].inputs != 0) {
    edit->rest = rest_bytes(n);
    edit->inputs = inputs_bytes(n);
    edit->inputs.remove_suffix(edit->rest.size());
  }
  edits_.PushBack(edit);
  edit_of_[n] = static_cast<uint32_t>(edits_.size());
  return *edit;
}

inline NodeEdit& GraphCore::MakeInputs(uint32_t n) {
  MakeUses();
  NodeEdit& edit = MakeDirty(n);
  if (edit.own_inputs) return edit;
  edit.own_inputs = true;
  if (n >= num_parsed_) return edit;
  const char* p = edit.inputs.data();
  for (uint32_t e = index_.first_edge(n); e < index_.first_edge(n + 1); ++e) {
    edit.input_list.PushBack(arena_, {e, NextInput(&p)});
  }
  return edit;
}

inline uint32_t GraphCore::NewEdge(uint32_t user, Edge edge) {
  edges_.PushBack(edge);
  const auto number = static_cast<uint32_t>(edges_.size() - 1);
  uses_.Add(edge.source, {user, number});
  return number;
}

inline void GraphCore::EndEdge(uint32_t number) {
  uint32_t& source = edges_[number].source;
  if (source != kNoNode) uses_.Remove(source);
  source = kNoNode;
}

inline uint32_t GraphCore::Add(absl::string_view name, absl::string_view op) {
  MakeUses();
  const uint32_t n = size();
  index_.names.PushBack(Keep(name));
  const uint32_t number = OpNumber(op);
  ++op_table().count(number);
  index_.ops.PushBack(number);
  uses_.AddNode();
  InsertName(n);
  MakeDirty(n).own_inputs = true;
  return n;
}

inline void GraphCore::Remove(uint32_t n) {
  NodeEdit& edit = MakeInputs(n);
  for (const InputEdit& input : edit.input_list) EndEdge(input.edge);
  index_.names.Erase(n);
  --op_table().count(index_.ops[n]);
  index_.ops[n] = kRemoved;
  ++num_removed_;
}

inline void GraphCore::SetName(uint32_t n, absl::string_view name) {
  MakeUses();
  index_.names.Erase(n);
  index_.names.Set(n, Keep(name));
  InsertName(n);
  MakeDirty(n);
  UseLists::Cursor cursor(uses_, n);
  while (const UseEntry* use = cursor.Next()) {
    if (edges_[use->edge].source != n) continue;
    for (InputEdit& input : MakeInputs(use->user).input_list) {
      if (input.edge == use->edge) input.text = {};
    }
  }
}

inline void GraphCore::SetOp(uint32_t n, absl::string_view op) {
  const uint32_t number = OpNumber(op);
  MakeDirty(n);
  if (live(n)) {
    --op_table().count(index_.ops[n]);
    ++op_table().count(number);
    index_.ops[n] = number;
  }
}

inline void GraphCore::SetDevice(uint32_t n, absl::string_view device) {
  NodeEdit& edit = MakeDirty(n);
  edit.device = Keep(device);
  edit.own_device = true;
}

inline void GraphCore::SetAttr(uint32_t n, absl::string_view name,
                               absl::string_view value) {
  NodeEdit& edit = MakeDirty(n);
  for (AttrEdit& attr : edit.attrs) {
    if (attr.name == name) {
      attr.value = value;
      return;
    }
  }
  edit.attrs.PushBack(arena_, {Keep(name), value});
}

inline void GraphCore::InsertEdge(uint32_t n, uint32_t at, Edge edge) {
  NodeEdit& edit = MakeInputs(n);
  edit.input_list.Insert(arena_, at, {NewEdge(n, edge), {}});
}

inline void GraphCore::ReplaceEdge(uint32_t n, uint32_t at, Edge edge) {
  InputEdit& input = MakeInputs(n).input_list[at];
  EndEdge(input.edge);
  input = {NewEdge(n, edge), {}};
}

inline void GraphCore::RemoveEdge(uint32_t n, uint32_t at) {
  NodeEdit& edit = MakeInputs(n);
  EndEdge(edit.input_list[at].edge);
  edit.input_list.Erase(at);
}

}  // namespace tfplug::internal

#endif  // TFPLUG_INTERNAL_GRAPH_CORE_H_
