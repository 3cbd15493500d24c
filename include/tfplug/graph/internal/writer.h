// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_WRITER_H_
#define TFPLUG_GRAPH_INTERNAL_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/base/optimization.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/graph/internal/attr_entry.h"
#include "tfplug/graph/internal/graph_state.h"
#include "tfplug/graph/internal/node_fields.h"
#include "tfplug/graph/internal/overlay.h"

#pragma GCC visibility push(hidden)

// Serializes an edited graph; unedited ranges are copied as they are.
namespace tfplug::graph_internal {

// The text of an input that comes from a node: "name", "name:port" or "^name".
class InputText {
 public:
  InputText(GraphState& state, const Edge& edge)
      : is_control_(edge.port == kControlPort), name_(state.name(edge.source)) {
    if (is_control_) return;
    // The name of a parsed node may itself look like "name:port" or "^name". A
    // reference to it then needs an explicit port.
    has_port_ = edge.port != 0 || !state.IsPlainName(name_);
    if (!has_port_) return;
    if (state.is_function() && edge.port != 0) {
      port_ = state.body_port(edge.port);
      return;
    }
    char* const end = digits_ + sizeof(digits_);
    char* p = end;
    auto port = static_cast<uint32_t>(edge.port);
    do {
      *--p = static_cast<char>('0' + port % 10);
    } while ((port /= 10) > 0);
    port_ = absl::string_view(p, static_cast<size_t>(end - p));
  }
  InputText(const InputText&) = delete;
  InputText& operator=(const InputText&) = delete;

  size_t size() const {
    return is_control_ + name_.size() + has_port_ + port_.size();
  }
  char* Write(char* to) const {
    if (is_control_) *to++ = '^';
    to = internal::WriteBytes(to, name_);
    if (has_port_) *to++ = ':';
    return internal::WriteBytes(to, port_);
  }
  std::string ToString() const {
    std::string text(size(), '\0');
    Write(&text[0]);
    return text;
  }

 private:
  const bool is_control_;
  bool has_port_ = false;
  const absl::string_view name_;
  absl::string_view port_;
  char digits_[10];
};

// Serializes one edited node.
class NodeWriter {
 public:
  NodeWriter(GraphState& state, uint32_t node, const NodeEdit& edit)
      : state_(state), node_(node), edit_(edit) {}

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
      size += internal::BytesFieldSize(value.size());
    }
    void Input(const InputText& text) {
      size += internal::BytesFieldSize(text.size());
    }
    void Raw(absl::string_view bytes) { size += bytes.size(); }
    void Attrs(const AttrList& attrs) { size += attrs.byte_size(); }
    size_t size = 0;
  };
  struct Copy {
    void Field(uint32_t number, absl::string_view value) {
      to = internal::WriteField(to, number, value);
    }
    void Input(const InputText& text) {
      *to++ = kInputTag;
      to = text.Write(internal::WriteVarint(to, text.size()));
    }
    void Raw(absl::string_view bytes) { to = internal::WriteBytes(to, bytes); }
    // Copies adjacent bytes, such as attributes of one node, at once.
    void Attrs(const AttrList& attrs) {
      for (const AttrEntry* attr = attrs.begin(); attr < attrs.end();) {
        const char* const begin = attr->field();
        size_t size = 0;
        do {
          size += attr->size();
          ++attr;
        } while (attr < attrs.end() && attr->field() == begin + size);
        Raw(absl::string_view(begin, size));
      }
    }
    char* to;
  };

  absl::string_view op() const {
    return state_.op_table().op(state_.op(node_));
  }
  template <class Sink>
  void Emit(Sink& sink) const {
    sink.Field(kNameField, state_.name(node_));
    sink.Field(kOpField, op());
    if (edit_.own_inputs) {
      EmitInputs(sink, edit_.inputs);
      EmitInputs(sink, edit_.controls);
    } else {
      sink.Raw(edit_.input_bytes);
    }
    if (edit_.own_device && !edit_.device.empty()) {
      sink.Field(kDeviceField, edit_.device);
    }
    if (edit_.own_device || edit_.own_attrs) {
      EmitTail(sink);
    } else {
      sink.Raw(edit_.tail);
    }
    sink.Attrs(edit_.attrs);
  }
  template <class Sink>
  void EmitInputs(Sink& sink, const InputList& inputs) const {
    for (const InputEdit& input : inputs) {
      if (input.has_text()) {
        sink.Field(kInputField, input.text());
      } else if (ABSL_PREDICT_TRUE(input.edge != kNoEdge)) {
        sink.Input(InputText(state_, state_.edge(input.edge)));
      }
    }
  }
  // Emits the fields of the tail that the edit does not replace.
  template <class Sink>
  void EmitTail(Sink& sink) const {
    if (edit_.own_attrs && !edit_.has_other_fields) {
      if (!edit_.own_device) sink.Raw(edit_.tail.substr(0, edit_.device_size));
      return;
    }
    TailReader field(edit_.tail);
    while (field.Next()) {
      const bool is_replaced = field.is_attr()     ? edit_.own_attrs
                               : field.is_device() ? edit_.own_device
                                                   : false;
      if (!is_replaced) sink.Raw(field.field());
    }
  }

  GraphState& state_;
  const uint32_t node_;
  const NodeEdit& edit_;
};

class GraphWriter {
 public:
  explicit GraphWriter(GraphState& state)
      : state_(state), overlay_(state.overlay()) {}

  // Returns the size of the written graph in bytes. Adds patches for a
  // function's results to the overlay's patches, and includes all of them.
  size_t ByteSize() {
    size_t size = state_.bytes().size();
    for (const GraphState::Result& result : state_.results()) {
      const NodeEdit* const edit = overlay_.Find(result.node);
      if (edit->dirty) AddPatch(result, *edit);
    }
    for (const Patch& patch : overlay_.patches()) {
      size += patch.bytes.size() - patch.size;
    }
    overlay_.ForEachTouched([&](uint32_t n) {
      if (state_.is_boundary(n)) return;
      if (n < state_.num_parsed()) size -= state_.record(n).size;
      if (!state_.live(n)) return;
      NodeEdit& edit = *overlay_.Find(n);
      CacheTexts(edit.inputs);
      edit.size = NodeWriter(state_, n, edit).Size();
      size += internal::BytesFieldSize(edit.size);
    });
    state_.set_byte_size(size);
    return size;
  }

  // Writes as many bytes as ByteSize() returned. Requires a call to ByteSize()
  // after the last edit.
  void Write(char* to) {
    const absl::string_view bytes = state_.bytes();
    const Patch* patch = overlay_.patches().begin();
    size_t done = 0;  // The number of `bytes` that are written or skipped.
    const auto copy = [&](size_t end) {
      to = internal::WriteBytes(
          to, absl::string_view(bytes.data() + done, end - done));
      done = end;
    };
    const auto copy_patched = [&](size_t end) {
      for (; patch != overlay_.patches().end() && patch->begin < end; ++patch) {
        copy(patch->begin);
        to = internal::WriteBytes(to, patch->bytes);
        done += patch->size;
      }
      copy(end);
    };
    overlay_.ForEachTouched([&](uint32_t n) {
      if (state_.is_boundary(n)) return;
      if (n < state_.num_parsed()) {
        const NodeRecord record = state_.record(n);
        copy_patched(record.begin);
        done += record.size;
      } else if (done < EndOfNodes()) {
        // Added nodes follow the last parsed one.
        copy_patched(EndOfNodes());
      }
      if (state_.live(n)) to = WriteNode(to, n);
    });
    copy_patched(bytes.size());
  }

 private:
  // Stores the texts of inputs that are plain node names, so that computing the
  // size and writing look up each name only once.
  void CacheTexts(InputList& inputs) {
    for (InputEdit& input : inputs) {
      if (input.has_text() || ABSL_PREDICT_FALSE(input.edge == kNoEdge)) {
        continue;
      }
      const Edge edge = state_.edge(input.edge);
      if (edge.port != 0) continue;
      const absl::string_view name = state_.name(edge.source);
      if (ABSL_PREDICT_TRUE(state_.IsPlainName(name))) {
        input = InputEdit(input.edge, name);
      }
    }
  }
  char* WriteNode(char* to, uint32_t n) {
    const NodeEdit& edit = *overlay_.Find(n);
    to = internal::WriteVarint(
        to, internal::MakeTag(state_.node_field(), internal::kBytesType));
    return NodeWriter(state_, n, edit)
        .Write(internal::WriteVarint(to, edit.size));
  }
  // Adds a patch for the entry of a result whose source has changed.
  void AddPatch(const GraphState::Result& result, const NodeEdit& edit) {
    const ByteRange field = result.field;
    internal::WireReader reader(
        absl::string_view(state_.bytes().data() + field.begin, field.size));
    reader.Next();
    std::string text;
    for (const InputList* list : {&edit.inputs, &edit.controls}) {
      if (list->size() == 0) continue;
      const InputEdit& input = (*list)[list->SlotOf(0)];
      text = input.has_text()
                 ? std::string(input.text())
                 : InputText(state_, state_.edge(input.edge)).ToString();
      if (list == &edit.controls) text.erase(0, 1);
      break;
    }
    std::string entry, bytes;
    internal::AppendField(entry, 1, state_.name(result.node));
    internal::AppendField(entry, 2, text);
    internal::AppendField(bytes, reader.number(), entry);
    overlay_.patches().PushBack(
        {field.begin, field.size, state_.CopyToArena(bytes)});
  }
  size_t EndOfNodes() const {
    if (state_.num_parsed() == 0) return 0;
    const NodeRecord last = state_.record(state_.num_parsed() - 1);
    return last.begin + last.size;
  }

  GraphState& state_;
  Overlay& overlay_;
};

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_WRITER_H_
