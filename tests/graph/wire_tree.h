// SPDX-License-Identifier: Apache-2.0
// The bytes of a GraphDef as a tree of fields that can be disfigured in the
// ways that wire format allows, and in some that it does not: for the fuzzers,
// and for tests that want many odd graphs.
#ifndef TFPLUG_TESTS_GRAPH_WIRE_TREE_H_
#define TFPLUG_TESTS_GRAPH_WIRE_TREE_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/testing/graph_validator.h"

namespace tfplug::testing {

using Random = std::minstd_rand;

// Uniform in [0, limit).
inline uint32_t Below(Random& random, uint32_t limit) {
  return static_cast<uint32_t>(random()) % std::max<uint32_t>(limit, 1);
}

// `pad` bytes longer than need be.
inline void AppendVarint(uint64_t value, int pad, std::string* out) {
  while (value >= 128) {
    out->push_back(static_cast<char>(value | 128));
    value >>= 7;
  }
  for (; pad > 0; --pad, value = 0) {
    out->push_back(static_cast<char>(value | 128));
  }
  out->push_back(static_cast<char>(value));
}

// One field with its tag, or (tag 0) bytes that are none.
struct WireField {
  uint32_t tag = 0;
  uint64_t number = 0;            // The value of a varint.
  std::string bytes;              // Of what is neither that nor a message.
  std::vector<WireField> fields;  // Of a message or a group.
  const FieldSchema* schema = nullptr;  // If it is a known field of that type.
  int pad_tag = 0, pad_number = 0;

  bool is_message() const {
    return schema != nullptr && schema->kind == FieldKind::kMessage;
  }
  bool is_group() const { return (tag & 7) == 3; }
};

class WireTree {
 public:
  explicit WireTree(absl::string_view graph_def) {
    internal::WireReader reader{graph_def.data(),
                                graph_def.data() + graph_def.size()};
    fields_ = Read(reader, MessageType::kGraphDef, 0, 0);
  }

  std::string ToString() const {
    std::string out;
    for (const WireField& field : fields_) Append(field, &out);
    return out;
  }

  // One random change, mostly one that leaves it a GraphDef.
  void Mutate(Random& random) {
    // A list somewhere in the tree: lists nearer to the root more often.
    std::vector<WireField>* list = &fields_;
    MessageType type = MessageType::kGraphDef;
    while (!list->empty() && Below(random, 4) != 0) {
      WireField& inner = (*list)[Below(random, list->size())];
      if (!inner.is_message() && !inner.is_group()) break;
      if (inner.is_message()) type = inner.schema->message;
      list = &inner.fields;
    }
    const uint32_t count = static_cast<uint32_t>(list->size());
    const uint32_t at = Below(random, count), other = Below(random, count);
    if (count == 0 || Below(random, 6) == 0) {
      list->insert(list->begin() + at, NewField(random, type, 3));
      return;
    }
    WireField& field = (*list)[at];
    switch (Below(random, 12)) {
      case 0:
        list->erase(list->begin() + at);
        break;
      case 1:  // Once more: repeated, last wins, or merged.
        list->insert(list->begin() + other, WireField(field));
        break;
      case 2:
        std::swap(field, (*list)[other]);
        break;
      case 3:
        field.pad_tag = static_cast<int>(Below(random, 5));
        break;
      case 4:
        field.pad_number = static_cast<int>(Below(random, 10));
        break;
      case 5:
        field.number = Number(random);
        break;
      case 6:
        if (!field.is_message()) field.bytes = Text(random);
        break;
      case 7:  // Another wire type: an unknown field, or a packed list.
        field = Retyped(field, Below(random, 6));
        break;
      case 8: {  // A group around it.
        WireField group;
        group.tag = (1 + Below(random, 20)) << 3 | 3;
        group.fields.push_back(std::move(field));
        (*list)[at] = std::move(group);
        break;
      }
      case 9:  // From elsewhere: a string that is another one's name, say.
        if (!field.is_message() && !fields_.empty()) {
          const WireField& node = fields_[Below(random, fields_.size())];
          if (!node.fields.empty()) field.bytes = node.fields[0].bytes;
        }
        break;
      default:
        list->insert(list->begin() + at, NewField(random, type, 2));
    }
  }

 private:
  // To the reader's end or to `end_tag`; what cannot be read stays as bytes.
  static std::vector<WireField> Read(internal::WireReader& reader,
                                     MessageType type, uint32_t end_tag,
                                     int depth) {
    const MessageSchema& schema = kMessages[static_cast<int>(type)];
    std::vector<WireField> fields;
    while (reader.left() > 0) {
      const char* start = reader.at;
      WireField field;
      if (!reader.ReadTag(&field.tag)) {
        fields.push_back(Rest(reader, start));
        break;
      }
      if (end_tag != 0 && field.tag == end_tag) break;
      for (int i = 0; end_tag == 0 && i < schema.num_fields; ++i) {
        if (schema.fields[i].number == field.tag >> 3 &&
            (field.tag & 7) == WireTypeOf(schema.fields[i].kind)) {
          field.schema = &schema.fields[i];
        }
      }
      if (!ReadValue(reader, depth, &field)) {
        fields.push_back(Rest(reader, start));
        break;
      }
      fields.push_back(std::move(field));
    }
    return fields;
  }

  static WireField Rest(internal::WireReader& reader, const char* start) {
    WireField field;
    field.bytes.assign(start, reader.end - start);
    reader.at = reader.end;
    return field;
  }

  static bool ReadValue(internal::WireReader& reader, int depth,
                        WireField* field) {
    const char* start = reader.at;
    size_t length;
    switch (field->tag & 7) {
      case 0:
        return reader.ReadVarint(10, &field->number);
      case 1:
      case 5:
        if (!reader.Skip((field->tag & 7) == 1 ? 8 : 4)) return false;
        field->bytes.assign(start, reader.at - start);
        return true;
      case 2:
        if (!reader.ReadLength(&length)) return false;
        start = reader.at;
        reader.at += length;
        if (field->is_message() && depth < 200) {
          internal::WireReader inner{start, reader.at};
          field->fields = Read(inner, field->schema->message, 0, depth + 1);
        } else {
          field->schema = nullptr;
          field->bytes.assign(start, length);
        }
        return true;
      case 3:
        if (depth > 200) return false;
        field->fields =
            Read(reader, MessageType::kGraphDef, field->tag + 1, depth + 1);
        return true;
      default:
        return false;
    }
  }

  static uint32_t WireTypeOf(FieldKind kind) {
    switch (kind) {
      case FieldKind::kVarint:
        return 0;
      case FieldKind::kFixed32:
        return 5;
      case FieldKind::kFixed64:
        return 1;
      default:
        return 2;
    }
  }

  static void Append(const WireField& field, std::string* out) {
    if (field.tag == 0) {
      out->append(field.bytes);
      return;
    }
    AppendVarint(field.tag, field.pad_tag, out);
    switch (field.tag & 7) {
      case 0:
        AppendVarint(field.number, field.pad_number, out);
        break;
      case 2: {
        std::string inner = field.bytes;
        for (const WireField& child : field.fields) Append(child, &inner);
        AppendVarint(inner.size(), field.pad_number, out);
        out->append(inner);
        break;
      }
      case 3:
        for (const WireField& child : field.fields) Append(child, out);
        AppendVarint(field.tag + 1, field.pad_number, out);
        break;
      default:
        out->append(field.bytes);
    }
  }

  static uint64_t Number(Random& random) {
    static constexpr uint64_t kNumbers[] = {
        0, 1, 2, 3, 9, 127, 128, 1u << 31, ~uint64_t{0}, uint64_t{1} << 63};
    return kNumbers[Below(random, 10)];
  }

  static std::string Text(Random& random) {
    static constexpr const char* kTexts[] = {"",
                                             "a",
                                             "b",
                                             "c",
                                             "d/e",
                                             "a:1",
                                             "b:0",
                                             "^a",
                                             "^c",
                                             "a:01",
                                             "a:x",
                                             ":1",
                                             "^",
                                             "^a:1",
                                             "T",
                                             "N",
                                             "Merge",
                                             "NextIteration",
                                             "Const",
                                             "value",
                                             "Relu",
                                             "\xC3\xA9",
                                             "\xC3",
                                             "\xED\xA0\x80",
                                             "\xF4\x90\x80\x80",
                                             "_class",
                                             "/job:w/device:CPU:0",
                                             "a:99999999999",
                                             "x\xE2\x82\xAC",
                                             "\xC0\x80"};
    return kTexts[Below(random, sizeof(kTexts) / sizeof(kTexts[0]))];
  }

  static WireField Retyped(const WireField& field, uint32_t wire_type) {
    WireField out;
    out.tag = (field.tag & ~7u) | wire_type;
    out.number = field.number;
    switch (wire_type) {
      case 1:
        out.bytes.assign(8, 'x');
        break;
      case 2:
        AppendVarint(field.number, 0, &out.bytes);
        AppendVarint(7, field.pad_number, &out.bytes);
        break;
      case 5:
        out.bytes.assign(4, 'x');
        break;
      default:
        break;
    }
    return out;
  }

  static WireField NewField(Random& random, MessageType type, int depth) {
    const MessageSchema& schema = kMessages[static_cast<int>(type)];
    WireField field;
    if (Below(random, 10) == 0) {
      field.tag = (1 + Below(random, 40)) << 3 | Below(random, 6);
      field = Retyped(field, field.tag & 7);
      return field;
    }
    field.schema = &schema.fields[Below(random, schema.num_fields)];
    field.tag = field.schema->number << 3 | WireTypeOf(field.schema->kind);
    field.number = Number(random);
    switch (field.schema->kind) {
      case FieldKind::kVarint:
        if (field.schema->repeated && Below(random, 2) == 0) {
          field = Retyped(field, 2);
        }
        break;
      case FieldKind::kFixed32:
        field.bytes.assign(4, static_cast<char>(field.number));
        break;
      case FieldKind::kFixed64:
        field.bytes.assign(8, static_cast<char>(field.number));
        break;
      case FieldKind::kMessage:
        for (uint32_t i = depth > 0 ? Below(random, 5) : 0; i > 0; --i) {
          field.fields.push_back(
              NewField(random, field.schema->message, depth - 1));
        }
        break;
      default:
        field.bytes = Text(random);
    }
    return field;
  }

  std::vector<WireField> fields_;
};

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTS_GRAPH_WIRE_TREE_H_
