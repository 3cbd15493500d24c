// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_NODE_FIELDS_H_
#define TFPLUG_GRAPH_INTERNAL_NODE_FIELDS_H_

#include <cstddef>
#include <cstdint>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/graph/internal/memory.h"

#pragma GCC visibility push(hidden)

// Finds the fields of a serialized NodeDef.
namespace tfplug::graph_internal {

// Numbers and tags of NodeDef's fields.
inline constexpr uint32_t kNameField = 1;
inline constexpr uint32_t kOpField = 2;
inline constexpr uint32_t kInputField = 3;
inline constexpr uint32_t kDeviceField = 4;
inline constexpr uint32_t kAttrField = 5;
inline constexpr char kNameTag =
    internal::MakeTag(kNameField, internal::kBytesType);
inline constexpr char kOpTag =
    internal::MakeTag(kOpField, internal::kBytesType);
inline constexpr char kInputTag =
    internal::MakeTag(kInputField, internal::kBytesType);
inline constexpr char kDeviceTag =
    internal::MakeTag(kDeviceField, internal::kBytesType);
inline constexpr char kAttrTag =
    internal::MakeTag(kAttrField, internal::kBytesType);

// The parts of a NodeDef, in their usual order: name, op, inputs, and the tail
// with the device, the attributes and all other fields.
struct NodeFields {
  absl::string_view name;
  absl::string_view op;
  const char* inputs;
  const char* tail;
  const char* end;
};

// Reads a length-delimited field if it has the one-byte tag `tag`. Returns the
// end of the field, which may be after `end`; null if the tag differs or the
// length is malformed.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline const char* PassField(
    const char* p, const char* end, char tag, absl::string_view* bytes) {
  if (end - p < 2 || *p != tag) return nullptr;
  uint32_t size = static_cast<unsigned char>(p[1]);
  p += 2;
  if (ABSL_PREDICT_FALSE(size >= 0x80)) {
    p = internal::ReadLength(p - 1, end, &size);
    if (p == nullptr) return nullptr;
  }
  *bytes = absl::string_view(p, size);
  return p + size;
}

// Skips consecutive length-delimited fields with `tag`, and calls f(value) for
// each value, which may extend beyond `end`. Returns the end of the last one.
template <class F>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline const char* PassFields(const char* p,
                                                           const char* end,
                                                           char tag,
                                                           const F& f) {
  const char* const last = end - 1;
  while (p < last && *p == tag) {
    const char* const field = p;
    uint32_t size = static_cast<unsigned char>(p[1]);
    p += 2;
    if (ABSL_PREDICT_FALSE(size >= 0x80)) {
      p = internal::ReadLength(field + 1, end, &size);
      if (p == nullptr) return field;
    }
    f(absl::string_view(p, size));
    p += size;
  }
  return p;
}

// Returns whether [p, end) contains only well-formed fields that may follow the
// device in a tail.
inline bool PassOthers(const char* p, const char* end) {
  while (p < end) {
    uint32_t tag = 0;
    if ((p = internal::ReadTag(p, end, &tag)) == nullptr) return false;
    if (tag >> 3 <= kDeviceField && (tag & 7) == internal::kBytesType)
      return false;
    if ((p = internal::SkipValue(p, end, tag, internal::kMaxWireDepth - 1)) ==
        nullptr) {
      return false;
    }
  }
  return p == end;
}

// Finds the parts of a NodeDef. Returns false if the bytes are malformed, if a
// name, op or device is repeated, or if name, op, inputs and device are not in
// this order, which is the order in which serializers write them. Calls f(text)
// for each input; if the result is false, inputs may be missing or malformed.
template <class F>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool FindFields(const char* p,
                                                    const char* end,
                                                    NodeFields* fields,
                                                    const F& f) {
  absl::string_view ignored;
  fields->name = fields->op = absl::string_view(p, 0);
  const char* next = PassField(p, end, kNameTag, &fields->name);
  if (next != nullptr) p = next;
  if ((next = PassField(p, end, kOpTag, &fields->op)) != nullptr) p = next;
  fields->inputs = p;
  p = PassFields(p, end, kInputTag, f);
  fields->tail = p;
  fields->end = end;
  if ((next = PassField(p, end, kDeviceTag, &ignored)) != nullptr) p = next;
  p = PassFields(p, end, kAttrTag, [](absl::string_view) {});
  return ABSL_PREDICT_TRUE(p == end) || PassOthers(p, end);
}

// Reads the input at `*p`, which must exist and be well-formed, and advances
// `*p` to the next one.
inline absl::string_view ReadInput(const char** p) {
  uint32_t size = static_cast<unsigned char>((*p)[1]);
  const char* begin = *p + 2;
  if (ABSL_PREDICT_FALSE(size >= 0x80)) {
    begin = internal::ReadLength(*p + 1, *p + INT32_MAX, &size);
  }
  *p = begin + size;
  return absl::string_view(begin, size);
}

// Copies a node to `memory` with its fields in the usual order: the last name,
// op and device, all inputs, and the other fields in their original order.
// Returns null data if the bytes are malformed.
inline absl::string_view Reorder(absl::string_view node, Arena& memory) {
  absl::string_view last[kDeviceField + 1];
  size_t size = 0;
  internal::WireReader counted(node);
  while (counted.Next()) {
    const int number = counted.number();
    const bool is_known = number <= static_cast<int>(kDeviceField) &&
                          counted.type() == internal::kBytesType;
    if (is_known && number != kInputField) {
      last[number] = counted.bytes();
    } else if (is_known) {
      size += internal::BytesFieldSize(counted.bytes().size());
    } else {
      size += counted.field().size();
    }
  }
  if (!counted.ok()) return {};
  for (absl::string_view value : last)
    size += internal::BytesFieldSize(value.size());
  char* const begin = memory.Allocate(size);
  char* to = begin;
  const auto write_last = [&](uint32_t number) {
    if (last[number].data() != nullptr) {
      to = internal::WriteField(to, number, last[number]);
    }
  };
  write_last(kNameField);
  write_last(kOpField);
  for (internal::WireReader field(node); field.Next();) {
    if (field.Is(kInputField, internal::kBytesType)) {
      to = internal::WriteField(to, kInputField, field.bytes());
    }
  }
  write_last(kDeviceField);
  for (internal::WireReader field(node); field.Next();) {
    if (field.number() > static_cast<int>(kDeviceField) ||
        field.type() != internal::kBytesType) {
      to = internal::WriteBytes(to, field.field());
    }
  }
  return absl::string_view(begin, static_cast<size_t>(to - begin));
}

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_NODE_FIELDS_H_
