// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_WRITER_H_
#define TFPLUG_GRAPH_INTERNAL_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/base/optimization.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/graph/internal/attrs.h"
#include "tfplug/graph/internal/fields.h"
#include "tfplug/graph/internal/graph_state.h"
#include "tfplug/graph/internal/overlay.h"

// The edited graph: what no edit touched, as the bytes that it came from.
namespace tfplug::internal {

// What an input says that comes from a node: "name", "name:port" or "^name".
class InputText {
 public:
  InputText(const GraphState& graph, const Edge& edge)
      : is_control_(edge.port == kControlPort),
        has_port_(edge.port > 0),
        name_(graph.name(edge.source)) {
    if (!has_port_) return;
    if (graph.is_function_) {
      port_ = graph.ports_.op(static_cast<uint32_t>(edge.port - 1));
      return;
    }
    char* const end = digits_ + sizeof(digits_);
    char* p = end;
    for (int port = edge.port; port > 0; port /= 10) {
      *--p = static_cast<char>('0' + port % 10);
    }
    port_ = absl::string_view(p, static_cast<size_t>(end - p));
  }
  InputText(const InputText&) = delete;
  InputText& operator=(const InputText&) = delete;

  size_t size() const {
    return is_control_ + name_.size() + has_port_ + port_.size();
  }
  char* Write(char* to) const {
    if (is_control_) *to++ = '^';
    to = WriteBytes(to, name_);
    if (has_port_) *to++ = ':';
    return WriteBytes(to, port_);
  }

 private:
  const bool is_control_;
  const bool has_port_;
  const absl::string_view name_;
  absl::string_view port_;
  char digits_[10];
};

inline std::string GraphState::input_text(uint32_t n, uint32_t i) const {
  const NodeEdit* const edit = overlay_.Find(n);
  if (edit == nullptr || !edit->own_inputs) {
    const char* p = inputs_begin(n);
    while (i-- > 0) NextInput(&p);
    return std::string(NextInput(&p));
  }
  const InputEdit& input = edit->input_list[i];
  if (input.has_text()) return std::string(input.text());
  const InputText text(*this, edges_[input.edge]);
  std::string result(text.size(), '\0');
  text.Write(&result[0]);
  return result;
}

// One edited node, as the NodeDef's fields.
class NodeWriter {
 public:
  NodeWriter(GraphState& graph, uint32_t node, const NodeEdit& edit)
      : graph_(graph), node_(node), edit_(edit) {}

  size_t Size() const {
    Count count;
    Emit(count);
    return count.size;
  }
  char* Write(char* to) const {
    Copy copy{to};
    Emit(copy);
    return copy.to;
  }

 private:
  struct Count {
    void Field(uint32_t, absl::string_view value) {
      size += BytesFieldSize(value.size());
    }
    void Input(const InputText& text) { size += BytesFieldSize(text.size()); }
    void Raw(absl::string_view bytes) { size += bytes.size(); }
    size_t size = 0;
  };
  struct Copy {
    void Field(uint32_t number, absl::string_view value) {
      to = WriteField(to, number, value);
    }
    void Input(const InputText& text) {
      *to++ = kInputTag;
      to = text.Write(WriteVarint(to, text.size()));
    }
    void Raw(absl::string_view bytes) { to = WriteBytes(to, bytes); }
    char* to;
  };

  absl::string_view op() const {
    return graph_.op_table().op(graph_.op(node_));
  }
  template <class Sink>
  void Emit(Sink& sink) const {
    sink.Field(kNameField, graph_.name(node_));
    sink.Field(kOpField, op());
    if (!edit_.own_inputs) sink.Raw(edit_.inputs);
    for (const InputEdit& input : edit_.input_list) {
      if (input.has_text()) {
        sink.Field(kInputField, input.text());
      } else {
        sink.Input(InputText(graph_, graph_.edge(input.edge)));
      }
    }
    if (edit_.own_device && !edit_.device.empty()) {
      sink.Field(kDeviceField, edit_.device);
    }
    if (edit_.own_device || edit_.own_attrs) {
      EmitRest(sink);
    } else {
      sink.Raw(edit_.rest);
    }
    for (const AttrEntry& attr : edit_.attrs) sink.Raw(attr.bytes());
  }
  // What is neither device nor attributes of the node's own.
  template <class Sink>
  void EmitRest(Sink& sink) const {
    if (edit_.own_attrs && !edit_.has_others) {
      if (!edit_.own_device) sink.Raw(edit_.rest.substr(0, edit_.device_size));
      return;
    }
    RestReader field(edit_.rest);
    while (field.Next()) {
      const bool is_ours = field.is_attr()     ? edit_.own_attrs
                           : field.is_device() ? edit_.own_device
                                               : false;
      if (!is_ours) sink.Raw(field.field());
    }
  }

  GraphState& graph_;
  const uint32_t node_;
  const NodeEdit& edit_;
};

class GraphWriter {
 public:
  explicit GraphWriter(GraphState& graph)
      : graph_(graph), overlay_(graph.overlay()) {}

  // With the patches of the overlay; adds those for a function's results.
  size_t ByteSize() {
    size_t size = graph_.bytes().size();
    for (const GraphState::Result& result : graph_.results()) {
      const NodeEdit* const edit = overlay_.Find(result.node);
      if (edit->dirty) AddPatch(result);
    }
    for (const Patch& patch : overlay_.patches()) {
      size += patch.bytes.size() - patch.size;
    }
    overlay_.ForEachTouched([&](uint32_t n) {
      if (graph_.is_boundary(n)) return;
      if (n < graph_.num_parsed()) size -= graph_.record(n).size;
      if (!graph_.live(n)) return;
      NodeEdit& edit = *overlay_.Find(n);
      FindTexts(edit);
      edit.size = NodeWriter(graph_, n, edit).Size();
      size += BytesFieldSize(edit.size);
    });
    return size;
  }

  // After ByteSize().
  void Write(char* to) {
    const absl::string_view bytes = graph_.bytes();
    const Patch* patch = overlay_.patches().begin();
    size_t done = 0;  // Of `bytes`.
    const auto copy = [&](size_t end) {
      to = WriteBytes(to, absl::string_view(bytes.data() + done, end - done));
      done = end;
    };
    const auto copy_patched = [&](size_t end) {
      for (; patch != overlay_.patches().end() && patch->begin < end; ++patch) {
        copy(patch->begin);
        to = WriteBytes(to, patch->bytes);
        done += patch->size;
      }
      copy(end);
    };
    overlay_.ForEachTouched([&](uint32_t n) {
      if (graph_.is_boundary(n)) return;
      if (n < graph_.num_parsed()) {
        const NodeRecord record = graph_.record(n);
        copy_patched(record.begin);
        done += record.size;
      } else if (done < EndOfNodes()) {
        // Added nodes stand behind the last one that there was.
        copy_patched(EndOfNodes());
      }
      if (graph_.live(n)) to = WriteNode(to, n);
    });
    copy_patched(bytes.size());
  }

 private:
  // Inputs that say no more than the name of a node: to be looked up once, and
  // not again to be written.
  void FindTexts(NodeEdit& edit) {
    for (InputEdit& input : edit.input_list) {
      const Edge edge = graph_.edge(input.edge);
      if (input.has_text() || edge.port != 0) continue;
      input = InputEdit(input.edge, graph_.name(edge.source));
    }
  }
  char* WriteNode(char* to, uint32_t n) {
    const NodeEdit& edit = *overlay_.Find(n);
    to = WriteVarint(to, MakeTag(graph_.node_field(), kBytesType));
    return NodeWriter(graph_, n, edit).Write(WriteVarint(to, edit.size));
  }
  // The entry of a result that comes from elsewhere now.
  void AddPatch(const GraphState::Result& result) {
    const Range field = result.field;
    WireReader reader(
        absl::string_view(graph_.bytes().data() + field.begin, field.size));
    reader.Next();
    std::string text = graph_.input_text(result.node, 0);
    if (text[0] == '^') text.erase(0, 1);
    std::string entry, bytes;
    AppendField(entry, 1, graph_.name(result.node));
    AppendField(entry, 2, text);
    AppendField(bytes, reader.number(), entry);
    overlay_.patches().PushBack({field.begin, field.size, graph_.Keep(bytes)});
  }
  size_t EndOfNodes() const {
    if (graph_.num_parsed() == 0) return 0;
    const NodeRecord last = graph_.record(graph_.num_parsed() - 1);
    return last.begin + last.size;
  }

  GraphState& graph_;
  Overlay& overlay_;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_GRAPH_INTERNAL_WRITER_H_
