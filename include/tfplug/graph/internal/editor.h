// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_EDITOR_H_
#define TFPLUG_GRAPH_INTERNAL_EDITOR_H_

#include <algorithm>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "tfplug/graph/internal/graph_state.h"
#include "tfplug/graph/internal/node_fields.h"
#include "tfplug/graph/internal/overlay.h"
#include "tfplug/graph/internal/use_lists.h"

#pragma GCC visibility push(hidden)

namespace tfplug::graph_internal {

// Edits a GraphState. Strings must live as long as the graph, unless a comment
// states that they are copied.
class GraphEditor {
 public:
  explicit GraphEditor(GraphState& state) : state_(state) {}

  // Adds a node without inputs, device or attributes. The name must be free.
  uint32_t Add(absl::string_view name, absl::string_view op) {
    state_.EnsureUseCounts();
    const uint32_t n = state_.size();
    const uint32_t op_id = state_.OpId(op);
    ++state_.op_table().count(op_id);
    state_.index_.names.PushBack(name);
    state_.index_.ops.PushBack(op_id);
    state_.uses_.AddNode();
    InsertName(n);
    MarkDirty(n).own_inputs = true;
    return n;
  }

  // Removes a node and its inputs. No other node may use it.
  void Remove(uint32_t n) {
    state_.EnsureUseCounts();
    const NodeEdit* const edit = state_.overlay_.Find(n);
    if (edit != nullptr && edit->own_inputs) {
      for (const InputList* list : {&edit->inputs, &edit->controls}) {
        for (const InputEdit& input : *list) {
          if (input.edge != kNoEdge) EndEdge(input.edge);
        }
      }
    } else if (n < state_.num_parsed_) {
      const uint32_t end = state_.index_.first_edge(n + 1);
      for (uint32_t e = state_.index_.first_edge(n); e < end; ++e) EndEdge(e);
    }
    state_.index_.names.Erase(n);
    --state_.op_table().count(state_.op(n));
    state_.index_.ops[n] = GraphState::kRemoved;
    ++state_.num_removed_;
    state_.overlay_.MarkRemoved(n, state_.size());
    SetChanged();
  }

  // Renames a node and updates the inputs of its users.
  void SetName(uint32_t n, absl::string_view name) {
    state_.EnsureUseCounts();
    state_.index_.names.Set(n, name);
    InsertName(n);
    MarkDirty(n);
    PruneUses(n);
    ForEachUse(n, [&](UseEntry use) {
      NodeEdit& edit = EditInputs(use.user);
      ListOf(edit, use.edge)[state_.SlotOf(use.user, use.edge, edit)] =
          InputEdit(use.edge);
    });
  }

  void SetOp(uint32_t n, absl::string_view op) {
    const uint32_t op_id = state_.OpId(op);
    MarkDirty(n);
    --state_.op_table().count(state_.op(n));
    ++state_.op_table().count(op_id);
    state_.index_.ops[n] = op_id;
  }

  void SetDevice(uint32_t n, absl::string_view device) {
    NodeEdit& edit = MarkDirty(n);
    edit.device = device;
    edit.own_device = true;
  }

  // ---- Attributes ----

  // Copies `name` and `value`.
  void SetAttr(uint32_t n, absl::string_view name, absl::string_view value) {
    EditAttrs(n).Set(MakeAttrEntry(name, value, arena()), arena());
  }
  // Sets an attribute to a value of `size` bytes, which write(to) writes.
  template <class F>
  void SetAttr(uint32_t n, absl::string_view name, size_t size,
               const F& write) {
    EditAttrs(n).Set(MakeAttrEntry(name, size, write, arena()), arena());
  }
  void RemoveAttr(uint32_t n, absl::string_view name) {
    EditAttrs(n).Erase(name);
  }
  // Copies an attribute of another node. Returns false if that node lacks it.
  bool CopyAttr(uint32_t n, GraphState& graph, uint32_t from,
                absl::string_view name) {
    AttrEntry attr;
    if (!graph.FindAttr(from, name, &attr)) return false;
    if (&graph != &state_) attr = MakeAttrEntry(name, attr.value(), arena());
    EditAttrs(n).Set(attr, arena());
    return true;
  }
  // Copies all attributes of another node.
  void CopyAttrs(uint32_t n, GraphState& graph, uint32_t from) {
    if (&graph == &state_) {
      AttrList& attrs = EditAttrs(n);
      const NodeEdit* const edit = graph.overlay_.Find(from);
      if (edit != nullptr && edit->own_attrs) {
        attrs.SetAll(edit->attrs, arena());
      } else {
        attrs.SetAll(graph.tail_bytes(from), arena());
      }
      return;
    }
    AttrList copies;
    graph.attrs(from).ForEach([&](const AttrEntry& attr) {
      copies.Add(MakeAttrEntry(attr.name(), attr.value(), arena()), arena());
    });
    EditAttrs(n).SetAll(copies, arena());
  }

  // ---- Edges ----

  void AddInput(uint32_t n, Edge edge) {
    Append(n, EditInputs(n).inputs, edge);
  }
  // Does nothing if the node already has the control input. Takes time linear
  // in the number of control inputs of the node or of uses of `source`,
  // whichever is less.
  void AddControl(uint32_t n, uint32_t source) {
    NodeEdit& edit = EditInputs(n);
    bool exists = false;
    ForEachControl(n, edit, source, [&](uint32_t) { exists = true; });
    if (!exists) Append(n, edit.controls, {source, kControlPort});
  }
  // Removes all control inputs from `source`. Takes as long as AddControl().
  void RemoveControls(uint32_t n, uint32_t source) {
    if (state_.num_uses(source) == 0 || state_.num_inputs(n, true) == 0) {
      return;
    }
    ForEachControl(n, EditInputs(n), source,
                   [&](uint32_t edge) { RemoveEdge(n, edge); });
  }
  // Replaces all data inputs of node `n`; edge_of(i) is the source of input
  // `i`.
  template <class F>
  void SetInputs(uint32_t n, uint32_t count, const F& edge_of) {
    NodeEdit& edit = EndInputs(n);
    edit.inputs.Clear();
    edit.inputs.Reserve(arena(), count);
    for (uint32_t i = 0; i < count; ++i) Append(n, edit.inputs, edge_of(i));
  }
  // Replaces the data input `edge` of node `n`.
  void ReplaceEdge(uint32_t n, uint32_t edge, Edge by) {
    NodeEdit& edit = EditInputs(n);
    const uint32_t slot = state_.SlotOf(n, edge, edit);
    EndEdge(edge);
    edit.inputs[slot] = InputEdit(NewEdge(n, by, slot));
  }
  void RemoveEdge(uint32_t n, uint32_t edge) {
    NodeEdit& edit = EditInputs(n);
    const uint32_t slot = state_.SlotOf(n, edge, edit);
    ListOf(edit, edge).Remove(arena(), slot);
    EndEdge(edge);
  }

  // Redirects the data edges from output `port` of `from` to `to`, except those
  // into the node of `to`.
  void ReplaceUses(uint32_t from, int32_t port, Edge to) {
    PruneUses(from);
    ForEachUse(from, [&](UseEntry use) {
      if (use.user == to.source || state_.edges_[use.edge].port != port) return;
      ReplaceEdge(use.user, use.edge, to);
    });
  }
  // Redirects all edges from `from` to `to`, except those into `to`.
  void ReplaceNode(uint32_t from, uint32_t to) {
    PruneUses(from);
    ForEachUse(from, [&](UseEntry use) {
      if (use.user == to) return;
      const int32_t port = state_.edges_[use.edge].port;
      if (port != kControlPort) {
        return ReplaceEdge(use.user, use.edge, {to, port});
      }
      RemoveEdge(use.user, use.edge);
      AddControl(use.user, to);
    });
  }

 private:
  Arena& arena() { return state_.overlay_.arena(); }

  void SetChanged() {
    state_.changed_ = true;
    state_.byte_size_ = GraphState::kUnknownSize;
  }
  void InsertName(uint32_t n) {
    if (!state_.index_.names.HasRoom(n)) {
      state_.index_.names.DropTable();
      state_.BuildNames();
    } else if (!state_.index_.names.Insert(n)) {
      state_.NoteDuplicate(n);
    }
  }

  // Returns the NodeEdit of `n`, created if necessary, and marks `n` as dirty.
  NodeEdit& MarkDirty(uint32_t n) {
    NodeEdit* edit = state_.overlay_.Find(n);
    if (ABSL_PREDICT_TRUE(edit != nullptr && edit->dirty)) {
      state_.byte_size_ = GraphState::kUnknownSize;
      return *edit;
    }
    return MarkDirtyFirst(n, edit);
  }
  NodeEdit& MarkDirtyFirst(uint32_t n, NodeEdit* edit) {
    if (edit == nullptr) {
      edit = &state_.overlay_.Add(n, state_.size());
      if (n < state_.num_parsed_) {
        state_.edited_ops_ |= uint64_t{1} << state_.op(n) % 64;
        edit->input_bytes = state_.index_.input_bytes(n);
        edit->tail = state_.index_.tail(n);
      }
    }
    state_.overlay_.MarkDirty(n, *edit);
    SetChanged();
    return *edit;
  }
  // Calls MarkDirty(), and ensures that the edit has lists of the inputs.
  NodeEdit& EditInputs(uint32_t n) {
    state_.EnsureUseCounts();
    NodeEdit& edit = MarkDirty(n);
    if (!edit.own_inputs) ListInputs(n, edit, true);
    return edit;
  }
  // Calls MarkDirty(), and ensures that the edit has a list of the control
  // inputs. Ends all data edges, but may leave them in a list.
  NodeEdit& EndInputs(uint32_t n) {
    state_.EnsureUseCounts();
    NodeEdit& edit = MarkDirty(n);
    if (!edit.own_inputs) {
      ListInputs(n, edit, false);
      const uint32_t begin = state_.index_.first_edge(n);
      const uint32_t end = begin + edit.num_parsed_inputs;
      for (uint32_t e = begin; e < end; ++e) EndEdge(e);
    } else {
      for (const InputEdit& input : edit.inputs) {
        if (input.edge != kNoEdge) EndEdge(input.edge);
      }
    }
    return edit;
  }
  // Lists the control inputs and, if `with_data`, the data inputs.
  void ListInputs(uint32_t n, NodeEdit& edit, bool with_data) {
    edit.own_inputs = true;
    uint32_t edge = state_.index_.first_edge(n);
    uint32_t control = state_.FirstControl(n);
    const uint32_t first_control = control;
    const uint32_t end = state_.index_.first_edge(n + 1);
    edit.num_parsed_inputs = control - edge;
    if (with_data) edit.inputs.Reserve(arena(), edit.num_parsed_inputs + 1);
    if (!with_data && control == end) return;
    if (control < end) edit.controls.Reserve(arena(), end - control + 1);
    const bool is_mixed =
        std::binary_search(state_.mixed_.begin(), state_.mixed_.end(), n);
    const char* p = edit.input_bytes.data();
    while (edge < first_control || control < end) {
      const absl::string_view text = ReadInput(&p);
      const bool is_control = ABSL_PREDICT_FALSE(is_mixed)
                                  ? state_.ParseInput(text).port == kControlPort
                                  : edge == first_control;
      if (is_control) {
        edit.controls.PushBack(arena(), {control++, text});
      } else {
        if (with_data) edit.inputs.PushBack(arena(), {edge, text});
        ++edge;
      }
    }
  }
  // Calls MarkDirty(), and ensures that the edit has a list of the attributes,
  // which it returns.
  AttrList& EditAttrs(uint32_t n) {
    NodeEdit& edit = MarkDirty(n);
    if (!edit.own_attrs) {
      edit.has_other_fields =
          !edit.attrs.Read(edit.tail, arena(), &edit.device_size);
      edit.own_attrs = true;
    }
    return edit.attrs;
  }

  // Returns the list that contains the edge, or contained it before EndEdge().
  InputList& ListOf(NodeEdit& edit, uint32_t edge) {
    return state_.edges_[edge].port == kControlPort ? edit.controls
                                                    : edit.inputs;
  }
  void Append(uint32_t n, InputList& list, Edge edge) {
    list.PushBack(arena(), InputEdit(NewEdge(n, edge, list.num_slots())));
  }
  uint32_t NewEdge(uint32_t user, Edge edge, uint32_t slot) {
    const auto id = static_cast<uint32_t>(state_.edges_.size());
    state_.AddEdge(edge, {user, slot});
    state_.uses_.Add(edge.source, {user, id});
    return id;
  }
  void EndEdge(uint32_t edge) {
    uint32_t& source = state_.edges_[edge].source;
    if (source != kNoNode) state_.uses_.Remove(source);
    source = kNoNode;
  }

  // Drops the uses that earlier edits have ended, so that many edits of one
  // node do not visit all of them each time.
  void PruneUses(uint32_t n) {
    state_.uses_.Prune(
        n, [&](UseEntry use) { return state_.edges_[use.edge].source != n; });
  }

  // Calls f(use) for each use of `n`, unless an earlier call ended its edge.
  template <class F>
  void ForEachUse(uint32_t n, const F& f) {
    UseLists::Cursor cursor(state_.uses(), n);
    while (const UseEntry* entry = cursor.Next()) {
      if (state_.edges_[entry->edge].source == n) f(UseEntry(*entry));
    }
  }

  // Calls f(edge), which may remove the edge, for each control edge from
  // `source` to `n`.
  template <class F>
  void ForEachControl(uint32_t n, NodeEdit& edit, uint32_t source, const F& f) {
    const InputList& controls = edit.controls;
    if (controls.num_slots() > state_.uses_.count(source)) {
      PruneUses(source);
      return ForEachUse(source, [&](UseEntry use) {
        if (use.user == n && state_.edges_[use.edge].port == kControlPort) {
          f(use.edge);
        }
      });
    }
    for (uint32_t slot = 0; slot < controls.num_slots(); ++slot) {
      const uint32_t edge = controls[slot].edge;
      if (edge != kNoEdge && state_.edges_[edge].source == source) f(edge);
    }
  }

  GraphState& state_;
};

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_EDITOR_H_
