// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_INTERNAL_GRAPH_EDITOR_H_
#define TFPLUG_INTERNAL_GRAPH_EDITOR_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "tfplug/internal/graph_core.h"
#include "tfplug/internal/graph_edges.h"
#include "tfplug/internal/graph_overlay.h"

namespace tfplug::internal {

// Edits a GraphCore. Texts are not copied: they live as long as the graph.
class GraphEditor {
 public:
  explicit GraphEditor(GraphCore& graph) : graph_(graph) {}

  // A node without inputs, device and attributes. The name must be free.
  uint32_t Add(absl::string_view name, absl::string_view op) {
    graph_.MakeUses();
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
    graph_.MakeUses();
    const EdgeNumbers inputs = graph_.MadeInputs(n);
    for (uint32_t i = 0; i < inputs.size(); ++i) EndEdge(inputs[i]);
    graph_.index_.names.Erase(n);
    --graph_.op_table().count(graph_.op(n));
    graph_.index_.ops[n] = GraphCore::kRemoved;
    ++graph_.num_removed_;
    graph_.overlay_.MarkGone(n, graph_.size());
    graph_.changed_ = true;
  }

  void SetName(uint32_t n, absl::string_view name) {
    graph_.MakeUses();
    graph_.index_.names.Set(n, name);
    InsertName(n);
    MakeDirty(n);
    // Who uses it, calls it by its new name.
    UseLists::Cursor cursor(graph_.uses_, n);
    while (const UseEntry* use = cursor.Next()) {
      if (graph_.edges_[use->edge].source != n) continue;
      for (InputEdit& input : MakeInputs(use->user).input_list) {
        if (input.edge == use->edge) input.text = {};
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

  // A null value removes it.
  void SetAttr(uint32_t n, absl::string_view name, absl::string_view value) {
    SetAttr(MakeDirty(n), name, value);
  }
  // All of `from`, in the same graph.
  void CopyAttrs(uint32_t n, uint32_t from) {
    NodeEdit& edit = MakeDirty(n);
    const NodeEdit* const other = graph_.overlay_.Find(from);
    Arena& arena = graph_.overlay_.arena();
    // Of several entries for a name the last counts; so it does here.
    for (RestReader field(graph_.rest_bytes(from)); field.Next();) {
      if (!field.is_attr()) continue;
      if (other != nullptr && other->FindAttr(field.name()) != nullptr)
        continue;
      SetAttr(edit, field.name(), field.value(arena));
    }
    if (other == nullptr) return;
    for (const AttrEdit& attr : other->attrs) {
      if (attr.value.data() != nullptr) SetAttr(edit, attr.name, attr.value);
    }
  }

  // Inputs by their place among all, control edges included.
  void InsertEdge(uint32_t n, uint32_t at, Edge edge) {
    NodeEdit& edit = MakeInputs(n);
    edit.input_list.Insert(graph_.overlay_.arena(), at, {NewEdge(n, edge), {}});
  }
  void ReplaceEdge(uint32_t n, uint32_t at, Edge edge) {
    InputEdit& input = MakeInputs(n).input_list[at];
    EndEdge(input.edge);
    input = {NewEdge(n, edge), {}};
  }
  void RemoveEdge(uint32_t n, uint32_t at) {
    NodeEdit& edit = MakeInputs(n);
    EndEdge(edit.input_list[at].edge);
    edit.input_list.Erase(at);
  }

 private:
  void SetAttr(NodeEdit& edit, absl::string_view name,
               absl::string_view value) {
    if (AttrEdit* attr = edit.FindAttr(name)) {
      attr->value = value;
    } else {
      edit.attrs.PushBack(graph_.overlay_.arena(), {name, value});
    }
  }

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
        edit->inputs = graph_.ParsedInputs(n);
        edit->rest = graph_.ParsedRest(n, edit->inputs);
      }
    }
    graph_.overlay_.MarkDirty(n, *edit);
    graph_.changed_ = true;
    return *edit;
  }
  // The same, with a list of its inputs.
  NodeEdit& MakeInputs(uint32_t n) {
    graph_.MakeUses();
    NodeEdit& edit = MakeDirty(n);
    if (edit.own_inputs) return edit;
    const EdgeNumbers inputs = graph_.MadeInputs(n);
    const char* p = edit.inputs.data();
    edit.input_list.Reserve(graph_.overlay_.arena(), inputs.size() + 1);
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      edit.input_list.PushBack(graph_.overlay_.arena(),
                               {inputs[i], NextInput(&p)});
    }
    edit.own_inputs = true;
    return edit;
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

  GraphCore& graph_;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_INTERNAL_GRAPH_EDITOR_H_
