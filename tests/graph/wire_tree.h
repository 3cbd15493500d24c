// SPDX-License-Identifier: Apache-2.0
// Parses the bytes of a GraphDef into a tree of fields, and changes it
// randomly. The result has unusual encodings, some of which the wire format
// forbids. For the fuzzer and for tests with many unusual graphs.
#ifndef TFPLUG_TESTS_GRAPH_WIRE_TREE_H_
#define TFPLUG_TESTS_GRAPH_WIRE_TREE_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/wire_format.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/proto/graph.pb.h"

namespace tfplug::testing {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

using Random = std::minstd_rand;

// Returns a random number in [0, limit).
inline uint32_t Below(Random& random, uint32_t limit) {
  return static_cast<uint32_t>(random()) % std::max<uint32_t>(limit, 1);
}

// Appends a varint that is `pad` bytes longer than necessary.
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

// A field with its tag, or malformed bytes with tag 0.
struct WireField {
  uint32_t tag = 0;
  uint64_t number = 0;            // The value of a varint.
  std::string bytes;              // The value of every other scalar.
  std::vector<WireField> fields;  // Of a message or a group.
  // Null if the field is unknown, or known with another wire type.
  const FieldDescriptor* descriptor = nullptr;
  int pad_tag = 0, pad_number = 0;

  bool is_message() const {
    return descriptor != nullptr && descriptor->message_type() != nullptr;
  }
  bool is_group() const { return (tag & 7) == 3; }
};

class WireTree {
 public:
  explicit WireTree(absl::string_view graph_def) {
    const char* p = graph_def.data();
    fields_ = Read(&p, p + graph_def.size(), proto::GraphDef::descriptor(),
                   /*end_tag=*/0, /*depth=*/0);
  }

  std::string ToString() const {
    std::string out;
    for (const WireField& field : fields_) Append(field, &out);
    return out;
  }

  // Makes one random change. In most cases, the result is still a GraphDef.
  void Mutate(Random& random) {
    // Selects a list in the tree; lists near the root are more likely.
    std::vector<WireField>* list = &fields_;
    const Descriptor* type = proto::GraphDef::descriptor();
    while (!list->empty() && Below(random, 4) != 0) {
      WireField& inner = (*list)[Below(random, list->size())];
      if (!inner.is_message() && !inner.is_group()) break;
      if (inner.is_message()) type = inner.descriptor->message_type();
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
      case 1:  // A duplicate: repeated, overridden or merged.
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
      case 7:  // A wrong wire type: an unknown field, or a packed list.
        field = Retyped(field, Below(random, 6));
        break;
      case 8: {  // Enclosed in a group.
        WireField group;
        group.tag = (1 + Below(random, 20)) << 3 | 3;
        group.fields.push_back(std::move(field));
        (*list)[at] = std::move(group);
        break;
      }
      case 9:  // A string of another field, such as another node's name.
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
  // Reads the fields in [*p, end) or until `end_tag`, which is 0 outside of a
  // group. Malformed bytes become the last field.
  static std::vector<WireField> Read(const char** p, const char* end,
                                     const Descriptor* type, uint32_t end_tag,
                                     int depth) {
    std::vector<WireField> fields;
    while (*p < end) {
      WireField field;
      const char* at = internal::ReadTag(*p, end, &field.tag);
      if (at != nullptr && end_tag != 0 && field.tag == end_tag) {
        *p = at;
        break;
      }
      if (at != nullptr && end_tag == 0) {
        const FieldDescriptor* known =
            type->FindFieldByNumber(static_cast<int>(field.tag >> 3));
        if (known != nullptr && (field.tag & 7) == WireTypeOf(known)) {
          field.descriptor = known;
        }
      }
      if (at == nullptr || !ReadValue(&at, end, depth, &field)) {
        WireField rest;
        rest.bytes.assign(*p, end);
        *p = end;
        fields.push_back(std::move(rest));
        break;
      }
      *p = at;
      fields.push_back(std::move(field));
    }
    return fields;
  }

  static bool ReadValue(const char** p, const char* end, int depth,
                        WireField* field) {
    const char* const start = *p;
    const auto size = [&]() -> ptrdiff_t { return end - start; };
    switch (field->tag & 7) {
      case 0:
        *p = internal::ReadVarint(start, end, &field->number);
        return *p != nullptr;
      case 1:
      case 5: {
        const int bytes = (field->tag & 7) == 1 ? 8 : 4;
        if (size() < bytes) return false;
        *p = start + bytes;
        field->bytes.assign(start, *p);
        return true;
      }
      case 2: {
        uint32_t length = 0;
        const char* at = internal::ReadLength(start, end, &length);
        if (at == nullptr) return false;
        *p = at + length;
        if (field->is_message() && depth < 200) {
          field->fields =
              Read(&at, *p, field->descriptor->message_type(), 0, depth + 1);
        } else {
          field->descriptor = nullptr;
          field->bytes.assign(at, length);
        }
        return true;
      }
      case 3:
        if (depth > 200) return false;
        field->fields = Read(p, end, proto::GraphDef::descriptor(),
                             field->tag + 1, depth + 1);
        return true;
      default:
        return false;
    }
  }

  // Returns the wire type of the field; for a list, the unpacked one.
  static uint32_t WireTypeOf(const FieldDescriptor* field) {
    return static_cast<uint32_t>(
        google::protobuf::internal::WireFormat::WireTypeForFieldType(
            field->type()));
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

  static WireField NewField(Random& random, const Descriptor* type, int depth) {
    WireField field;
    if (Below(random, 10) == 0) {
      field.tag = (1 + Below(random, 40)) << 3 | Below(random, 6);
      field = Retyped(field, field.tag & 7);
      return field;
    }
    const auto count = static_cast<uint32_t>(type->field_count());
    field.descriptor = type->field(static_cast<int>(Below(random, count)));
    const uint32_t wire_type = WireTypeOf(field.descriptor);
    field.tag =
        static_cast<uint32_t>(field.descriptor->number()) << 3 | wire_type;
    field.number = Number(random);
    switch (wire_type) {
      case 0:
        if (field.descriptor->is_repeated() && Below(random, 2) == 0) {
          field = Retyped(field, 2);
        }
        break;
      case 1:
      case 5:
        field.bytes.assign(wire_type == 1 ? 8 : 4,
                           static_cast<char>(field.number));
        break;
      default:
        if (!field.is_message()) {
          field.bytes = Text(random);
          break;
        }
        for (uint32_t i = depth > 0 ? Below(random, 5) : 0; i > 0; --i) {
          field.fields.push_back(
              NewField(random, field.descriptor->message_type(), depth - 1));
        }
    }
    return field;
  }

  std::vector<WireField> fields_;
};

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTS_GRAPH_WIRE_TREE_H_
