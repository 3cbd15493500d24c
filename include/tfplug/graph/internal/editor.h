// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_EDITOR_H_
#define TFPLUG_GRAPH_INTERNAL_EDITOR_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "tfplug/graph/internal/edges.h"
#include "tfplug/graph/internal/graph_state.h"
#include "tfplug/graph/internal/overlay.h"

namespace tfplug::internal {

// Edits a GraphState. Texts are not copied but where it says so: they live as
// long as the graph.
class GraphEditor {
 public:
  explicit GraphEditor(GraphState& graph) : graph_(graph) {}

  // A node without inputs, device and attributes. The name must be free.
  uint32_t Add(absl::string_view name, absl::string_view op) {
    graph_.NeedUses();
    const uint32_t n = graph_.size();
    const uint32_t number = graph_.OpNumber(op);
    ++graph_.op_table().count(number);
    graph_.index_.names.PushBack(name);
    graph_.index_.ops.PushBack(number);
    graph_.uses_.AddNode();
    InsertName(n);
    MakeDirty(n).own_inputs = true;
    return n;
  }

  // Its edges come to an end. Nobody may use it any more.
  void Remove(uint32_t n) {
    graph_.NeedUses();
    const EdgeNumbers inputs = graph_.MadeInputs(n);
    for (uint32_t i = 0; i < inputs.size(); ++i) EndEdge(inputs[i]);
    graph_.index_.names.Erase(n);
    --graph_.op_table().count(graph_.op(n));
    graph_.index_.ops[n] = GraphState::kRemoved;
    ++graph_.num_removed_;
    graph_.overlay_.MarkGone(n, graph_.size());
    graph_.changed_ = true;
  }

  void SetName(uint32_t n, absl::string_view name) {
    graph_.NeedUses();
    graph_.index_.names.Set(n, name);
    InsertName(n);
    MakeDirty(n);
    // Who uses it, calls it by its new name.
    UseLists::Cursor cursor(graph_.uses_, n);
    while (const UseEntry* use = cursor.Next()) {
      if (graph_.edges_[use->edge].source != n) continue;
      for (InputEdit& input : MakeInputs(use->user).input_list) {
        if (input.edge == use->edge) input = InputEdit(input.edge);
      }
    }
  }

  void SetOp(uint32_t n, absl::string_view op) {
    const uint32_t number = graph_.OpNumber(op);
    MakeDirty(n);
    --graph_.op_table().count(graph_.op(n));
    ++graph_.op_table().count(number);
    graph_.index_.ops[n] = number;
  }

  void SetDevice(uint32_t n, absl::string_view device) {
    NodeEdit& edit = MakeDirty(n);
    edit.device = device;
    edit.own_device = true;
  }

  // `name` and `value` are copied.
  void SetAttr(uint32_t n, absl::string_view name, absl::string_view value) {
    AttrList& attrs = MakeAttrs(n);
    attrs.Set(MakeAttrEntry(name, value, arena()), arena());
  }
  void RemoveAttr(uint32_t n, absl::string_view name) {
    MakeAttrs(n).Erase(name);
  }
  // One or all of `from`, another node. False if it is not there.
  bool CopyAttr(uint32_t n, GraphState& graph, uint32_t from,
                absl::string_view name) {
    AttrEntry attr;
    if (!graph.FindAttr(from, name, &attr)) return false;
    if (&graph != &graph_) attr = MakeAttrEntry(name, attr.value(), arena());
    MakeAttrs(n).Set(attr, arena());
    return true;
  }
  void CopyAttrs(uint32_t n, GraphState& graph, uint32_t from) {
    if (&graph == &graph_) {
      AttrList& attrs = MakeAttrs(n);
      const NodeEdit* const edit = graph.overlay_.Find(from);
      if (edit != nullptr && edit->own_attrs) {
        attrs.SetAll(edit->attrs, arena());
      } else {
        attrs.SetAll(graph.rest_bytes(from), arena());
      }
      return;
    }
    AttrList copies;
    graph.attrs(from).ForEach([&](const AttrEntry& attr) {
      copies.Add(MakeAttrEntry(attr.name(), attr.value(), arena()), arena());
    });
    MakeAttrs(n).SetAll(copies, arena());
  }

  // Inputs by their place among all, control edges included.
  void InsertEdge(uint32_t n, uint32_t at, Edge edge) {
    NodeEdit& edit = MakeInputs(n);
    edit.input_list.Insert(arena(), at, InputEdit(NewEdge(n, edge)));
  }
  void ReplaceEdge(uint32_t n, uint32_t at, Edge edge) {
    InputEdit& input = MakeInputs(n).input_list[at];
    EndEdge(input.edge);
    input = InputEdit(NewEdge(n, edge));
  }
  void RemoveEdge(uint32_t n, uint32_t at) {
    NodeEdit& edit = MakeInputs(n);
    EndEdge(edit.input_list[at].edge);
    edit.input_list.Erase(at);
  }

 private:
  Arena& arena() { return graph_.overlay_.arena(); }

  void InsertName(uint32_t n) {
    if (!graph_.index_.names.HasRoom()) {
      graph_.index_.names.DropTable();
      graph_.MakeNames();
    } else if (!graph_.index_.names.Insert(n)) {
      graph_.NoteDuplicate(n);
    }
  }

  NodeEdit& MakeDirty(uint32_t n) {
    NodeEdit* edit = graph_.overlay_.Find(n);
    if (edit == nullptr) {
      edit = &graph_.overlay_.Add(n, graph_.size());
      if (n < graph_.num_parsed_) {
        graph_.edited_ops_ |= uint64_t{1} << graph_.op(n) % 64;
        edit->inputs = graph_.index_.inputs(n);
        edit->rest = graph_.index_.rest(n);
      }
    }
    graph_.overlay_.MarkDirty(n, *edit);
    graph_.changed_ = true;
    return *edit;
  }
  // The same, with a list of its inputs.
  NodeEdit& MakeInputs(uint32_t n) {
    graph_.NeedUses();
    NodeEdit& edit = MakeDirty(n);
    if (edit.own_inputs) return edit;
    const EdgeNumbers inputs = graph_.MadeInputs(n);
    const char* p = edit.inputs.data();
    edit.input_list.Reserve(arena(), inputs.size() + 1);
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      edit.input_list.PushBack(arena(), {inputs[i], NextInput(&p)});
    }
    edit.own_inputs = true;
    return edit;
  }
  // The same, with a list of its attributes.
  AttrList& MakeAttrs(uint32_t n) {
    NodeEdit& edit = MakeDirty(n);
    if (!edit.own_attrs) {
      edit.has_others = !edit.attrs.Read(edit.rest, arena(), &edit.device_size);
      edit.own_attrs = true;
    }
    return edit.attrs;
  }

  uint32_t NewEdge(uint32_t user, Edge edge) {
    graph_.edges_.PushBack(edge);
    const auto number = static_cast<uint32_t>(graph_.edges_.size() - 1);
    graph_.uses_.Add(edge.source, {user, number});
    return number;
  }
  void EndEdge(uint32_t number) {
    uint32_t& source = graph_.edges_[number].source;
    if (source != kNoNode) graph_.uses_.Remove(source);
    source = kNoNode;
  }

  GraphState& graph_;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_GRAPH_INTERNAL_EDITOR_H_
