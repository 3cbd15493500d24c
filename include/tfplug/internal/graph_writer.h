// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_INTERNAL_GRAPH_WRITER_H_
#define TFPLUG_INTERNAL_GRAPH_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "tfplug/internal/graph_core.h"
#include "tfplug/internal/wire.h"

// The edited GraphDef: what no edit touched, as the bytes that it came from.
namespace tfplug::internal {

// Of one edited node.
class NodeWriter {
 public:
  NodeWriter(GraphCore& graph, uint32_t node, const NodeEdit& edit)
      : graph_(graph), node_(node), edit_(edit) {}

  // Of the NodeDef, without tag and length.
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
    void Raw(absl::string_view bytes) { size += bytes.size(); }
    size_t size = 0;
  };
  struct Copy {
    void Field(uint32_t number, absl::string_view value) {
      to = WriteField(to, number, value);
    }
    void Raw(absl::string_view bytes) { to = WriteBytes(to, bytes); }
    char* to;
  };

  template <class Sink>
  void Emit(Sink& sink) const {
    sink.Field(kNameField, graph_.name(node_));
    sink.Field(kOpField, graph_.op_table().op(graph_.op(node_)));
    if (edit_.own_inputs) {
      for (uint32_t i = 0; i < edit_.input_list.size(); ++i) {
        sink.Field(kInputField, graph_.input_text(node_, i));
      }
    } else {
      sink.Raw(edit_.inputs);
    }
    if (edit_.own_device && !edit_.device.empty()) {
      sink.Field(kDeviceField, edit_.device);
    }
    if (!edit_.own_device && edit_.attrs.empty()) {
      sink.Raw(edit_.rest);
      return;
    }
    for (WireReader field(edit_.rest); field.Next();) {
      if (!Replaced(field)) sink.Raw(field.field());
    }
    for (const AttrEdit& attr : edit_.attrs) {
      if (attr.value.data() != nullptr) EmitAttr(sink, attr);
    }
  }
  template <class Sink>
  static void EmitAttr(Sink& sink, const AttrEdit& attr) {
    const size_t size =
        BytesFieldSize(attr.name.size()) + BytesFieldSize(attr.value.size());
    char header[16];
    char* const end =
        WriteVarint(WriteVarint(header, MakeTag(kAttrField, kBytesType)), size);
    sink.Raw(absl::string_view(header, static_cast<size_t>(end - header)));
    sink.Field(1, attr.name);
    sink.Field(2, attr.value);
  }
  bool Replaced(const WireReader& field) const {
    if (field.Is(kDeviceField, kBytesType)) return edit_.own_device;
    if (edit_.attrs.empty() || !field.Is(kAttrField, kBytesType)) return false;
    absl::string_view name;
    for (WireReader entry(field.bytes()); entry.Next();) {
      if (entry.Is(1, kBytesType)) name = entry.bytes();
    }
    for (const AttrEdit& attr : edit_.attrs) {
      if (attr.name == name) return true;
    }
    return false;
  }

  GraphCore& graph_;
  const uint32_t node_;
  const NodeEdit& edit_;
};

class GraphWriter {
 public:
  explicit GraphWriter(GraphCore& graph) : graph_(graph) {}

  size_t ByteSize() {
    size_t size = graph_.bytes().size();
    const Array<uint32_t>& edit_of = graph_.edit_of();
    for (uint32_t n = 0; n < edit_of.size(); ++n) {
      if (!Touched(n)) continue;
      if (n < graph_.num_parsed()) size -= graph_.index().records[n].size;
      if (!graph_.live(n)) continue;
      auto* edit = const_cast<NodeEdit*>(graph_.Edit(n));
      edit->size = static_cast<uint32_t>(NodeWriter(graph_, n, *edit).Size());
      size += BytesFieldSize(edit->size);
    }
    return size;
  }

  // After ByteSize().
  void Write(char* to) {
    const absl::string_view bytes = graph_.bytes();
    const uint32_t num_parsed = graph_.num_parsed();
    const Array<uint32_t>& edit_of = graph_.edit_of();
    size_t done = 0;  // Of `bytes`.
    for (uint32_t n = 0; n < edit_of.size(); ++n) {
      if (!Touched(n)) continue;
      if (n < num_parsed) {
        const NodeRecord record = graph_.index().records[n];
        to = WriteBytes(to, bytes.substr(done, record.begin - done));
        done = record.begin + record.size;
      } else {
        // Added nodes stand behind the last one that there was.
        const size_t end = EndOfNodes();
        if (done < end) {
          to = WriteBytes(to, bytes.substr(done, end - done));
          done = end;
        }
      }
      if (graph_.live(n)) to = WriteNode(to, n);
    }
    WriteBytes(to, bytes.substr(done));
  }

 private:
  bool Touched(uint32_t n) const {
    const NodeEdit* const edit = graph_.Edit(n);
    return edit != nullptr && edit->dirty;
  }
  char* WriteNode(char* to, uint32_t n) {
    const NodeEdit& edit = *graph_.Edit(n);
    to = WriteVarint(to, MakeTag(graph_.node_field(), kBytesType));
    to = WriteVarint(to, edit.size);
    return NodeWriter(graph_, n, edit).Write(to);
  }
  size_t EndOfNodes() const {
    const uint32_t num_parsed = graph_.num_parsed();
    if (num_parsed == 0) return 0;
    const NodeRecord last = graph_.index().records[num_parsed - 1];
    return last.begin + last.size;
  }

  GraphCore& graph_;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_INTERNAL_GRAPH_WRITER_H_
