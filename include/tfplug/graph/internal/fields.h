// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_FIELDS_H_
#define TFPLUG_GRAPH_INTERNAL_FIELDS_H_

#include <cstddef>
#include <cstdint>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/graph/internal/memory.h"

// A NodeDef's fields in its bytes.
namespace tfplug::internal {

// Fields of a NodeDef.
inline constexpr uint32_t kNameField = 1;
inline constexpr uint32_t kOpField = 2;
inline constexpr uint32_t kInputField = 3;
inline constexpr uint32_t kDeviceField = 4;
inline constexpr uint32_t kAttrField = 5;
inline constexpr char kNameTag = MakeTag(kNameField, kBytesType);
inline constexpr char kOpTag = MakeTag(kOpField, kBytesType);
inline constexpr char kInputTag = MakeTag(kInputField, kBytesType);
inline constexpr char kDeviceTag = MakeTag(kDeviceField, kBytesType);
inline constexpr char kAttrTag = MakeTag(kAttrField, kBytesType);

// Where a node's fields are. This is all of a node: name and op, then its
// inputs, then the rest: perhaps the device, then attributes and whatever else.
struct NodeFields {
  absl::string_view name;
  absl::string_view op;
  const char* inputs;
  uint32_t num_inputs;
  const char* rest;
  const char* end;
};

// Goes over a field if it has `tag`, of a single byte, and holds bytes. Where
// it ends, maybe behind `end`; null if it has another tag, or the length is not
// well-formed.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline const char* PassField(
    const char* p, const char* end, char tag, absl::string_view* bytes) {
  if (end - p < 2 || *p != tag) return nullptr;
  uint32_t size = static_cast<unsigned char>(p[1]);
  p += 2;
  if (ABSL_PREDICT_FALSE(size >= 0x80)) {
    p = ReadLength(p - 1, end, &size);
    if (p == nullptr) return nullptr;
  }
  *bytes = absl::string_view(p, size);
  return p + size;
}

// Goes over all of a run of such fields, and counts them.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline const char* PassFields(const char* p,
                                                           const char* end,
                                                           char tag,
                                                           uint32_t* count) {
  const char* const last = end - 1;
  while (p < last && *p == tag) {
    const char* const field = p;
    uint32_t size = static_cast<unsigned char>(p[1]);
    p += 2;
    if (ABSL_PREDICT_FALSE(size >= 0x80)) {
      p = ReadLength(field + 1, end, &size);
      if (p == nullptr) return field;
    }
    p += size;
    ++*count;
  }
  return p;
}

// Whether [p, end) are well-formed fields, with nothing of NodeFields but what
// is in `rest` anyway.
inline bool PassOthers(const char* p, const char* end) {
  while (p < end) {
    uint32_t tag = 0;
    if ((p = ReadTag(p, end, &tag)) == nullptr) return false;
    if (tag >> 3 <= kDeviceField && (tag & 7) == kBytesType) return false;
    if ((p = SkipValue(p, end, tag, kMaxWireDepth - 1)) == nullptr) {
      return false;
    }
  }
  return p == end;
}

// Finds these fields where name, op, inputs and device stand in this order and
// at most once, as every serializer writes them. False where it is not so, or
// the bytes are not well-formed.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool FindFields(const char* p,
                                                    const char* end,
                                                    NodeFields* fields) {
  absl::string_view ignored;
  fields->name = fields->op = absl::string_view(p, 0);
  const char* next = PassField(p, end, kNameTag, &fields->name);
  if (next != nullptr) p = next;
  if ((next = PassField(p, end, kOpTag, &fields->op)) != nullptr) p = next;
  fields->inputs = p;
  uint32_t num_inputs = 0;
  p = PassFields(p, end, kInputTag, &num_inputs);
  fields->num_inputs = num_inputs;
  fields->rest = p;
  fields->end = end;
  if ((next = PassField(p, end, kDeviceTag, &ignored)) != nullptr) p = next;
  p = PassFields(p, end, kAttrTag, &num_inputs);
  return ABSL_PREDICT_TRUE(p == end) || PassOthers(p, end);
}

// The input that begins at `*p`, which goes on to the next one. It is there,
// and well-formed.
inline absl::string_view NextInput(const char** p) {
  uint32_t size = static_cast<unsigned char>((*p)[1]);
  const char* begin = *p + 2;
  if (ABSL_PREDICT_FALSE(size >= 0x80)) {
    begin = ReadLength(*p + 1, *p + INT32_MAX, &size);
  }
  *p = begin + size;
  return absl::string_view(begin, size);
}

// The same node with its fields in that order, in `memory`: the last name, op
// and device, all inputs, all else in the order in which it was. Null if the
// bytes are not well-formed.
inline absl::string_view InOrder(absl::string_view node, Arena& memory) {
  absl::string_view last[kDeviceField + 1];
  size_t size = 0;
  WireReader counted(node);
  while (counted.Next()) {
    const int number = counted.number();
    const bool ours = number <= static_cast<int>(kDeviceField) &&
                      counted.type() == kBytesType;
    if (ours && number != kInputField) {
      last[number] = counted.bytes();
    } else if (ours) {
      size += BytesFieldSize(counted.bytes().size());
    } else {
      size += counted.field().size();
    }
  }
  if (!counted.ok()) return {};
  for (absl::string_view value : last) size += BytesFieldSize(value.size());
  char* const begin = memory.Allocate(size);
  char* to = begin;
  const auto write_last = [&](uint32_t number) {
    if (last[number].data() != nullptr) {
      to = WriteField(to, number, last[number]);
    }
  };
  write_last(kNameField);
  write_last(kOpField);
  for (WireReader field(node); field.Next();) {
    if (field.Is(kInputField, kBytesType)) {
      to = WriteField(to, kInputField, field.bytes());
    }
  }
  write_last(kDeviceField);
  for (WireReader field(node); field.Next();) {
    if (field.number() > static_cast<int>(kDeviceField) ||
        field.type() != kBytesType) {
      to = WriteBytes(to, field.field());
    }
  }
  return absl::string_view(begin, static_cast<size_t>(to - begin));
}

}  // namespace tfplug::internal

#endif  // TFPLUG_GRAPH_INTERNAL_FIELDS_H_
