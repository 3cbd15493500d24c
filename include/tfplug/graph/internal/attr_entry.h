// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_ATTR_ENTRY_H_
#define TFPLUG_GRAPH_INTERNAL_ATTR_ENTRY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/graph/internal/memory.h"
#include "tfplug/graph/internal/node_fields.h"

#pragma GCC visibility push(hidden)

// Reads the tail of a node, which follows its inputs: the device, attributes
// and other fields. The tail's fields are well-formed, but their contents may
// be malformed.
namespace tfplug::graph_internal {

// An attribute as a field of a NodeDef, including the tag. It consists of a
// name and a value, in this order, and is in the graph's bytes or its arena.
class AttrEntry {
 public:
  AttrEntry() = default;
  // `name` and `value` are in the `size` bytes at `field`, and the value is at
  // their end.
  AttrEntry(const char* field, size_t size, absl::string_view name,
            const char* value)
      : field_(field),
        layout_(uint64_t{size} |
                static_cast<uint64_t>(name.data() - field) << kNameAt |
                uint64_t{std::min(name.size(), kLongName)} << kNameSize |
                static_cast<uint64_t>(value - name.data() - name.size())
                    << kValueAfter) {}

  // Returns an attribute whose sizes take one byte each: see PassAttr().
  static AttrEntry Short(const char* field, uint32_t size, uint32_t name_size) {
    AttrEntry attr;
    attr.field_ = field;
    attr.layout_ = uint64_t{size} | uint64_t{4} << kNameAt |
                   uint64_t{name_size} << kNameSize |
                   uint64_t{2} << kValueAfter;
    return attr;
  }

  const char* field() const { return field_; }
  size_t size() const {
    return static_cast<size_t>(layout_ & ((uint64_t{1} << kNameAt) - 1));
  }
  absl::string_view bytes() const { return absl::string_view(field_, size()); }
  ABSL_ATTRIBUTE_ALWAYS_INLINE absl::string_view name() const {
    const char* const name = field_ + Byte(kNameAt);
    const size_t size = Byte(kNameSize);
    return absl::string_view(
        name, ABSL_PREDICT_TRUE(size < kLongName) ? size : LongNameSize());
  }
  absl::string_view value() const {
    const absl::string_view before = name();
    const char* const value = before.data() + before.size() + Byte(kValueAfter);
    return absl::string_view(value,
                             static_cast<size_t>(field_ + size() - value));
  }

 private:
  // The parts of layout_, by their first bits: the size; the position of the
  // name; its size, if less than kLongName; the number of bytes between the
  // name and the value. Edits of many nodes have many attributes, so these are
  // small.
  static constexpr int kNameAt = 40, kNameSize = 48, kValueAfter = 56;
  static constexpr size_t kLongName = 255;

  size_t Byte(int first) const {
    return static_cast<unsigned char>(layout_ >> first);
  }
  // Reads the name's size from the bytes.
  ABSL_ATTRIBUTE_NOINLINE size_t LongNameSize() const {
    const char* const end = field_ + size();
    uint64_t size = 0;
    internal::ReadVarint(internal::ReadVarint(field_ + 1, end, &size) + 1, end,
                         &size);
    return static_cast<size_t>(size);
  }

  const char* field_ = nullptr;
  uint64_t layout_ = 0;
};
static_assert(sizeof(AttrEntry) <= 16);

// Makes an attribute in `arena`. Its value has `value_size` bytes, which
// write(to) writes.
template <class F>
AttrEntry MakeAttrEntry(absl::string_view name, size_t value_size,
                        const F& write, Arena& arena) {
  const size_t small = 4 + name.size() + value_size;
  if (ABSL_PREDICT_TRUE(name.size() < 0x80 && small < 0x80)) {
    char* const field = arena.Allocate(2 + small);  // All sizes take one byte.
    field[0] = kAttrTag;
    field[1] = static_cast<char>(small);
    field[2] = internal::MakeTag(1, internal::kBytesType);
    field[3] = static_cast<char>(name.size());
    char* const to = internal::WriteBytes(field + 4, name);
    to[0] = internal::MakeTag(2, internal::kBytesType);
    to[1] = static_cast<char>(value_size);
    write(to + 2);
    return AttrEntry::Short(field, static_cast<uint32_t>(2 + small),
                            static_cast<uint32_t>(name.size()));
  }
  const size_t header = 1 + internal::VarintSize(name.size());
  const size_t entry =
      header + name.size() + internal::BytesFieldSize(value_size);
  const size_t begin = 1 + internal::VarintSize(entry);
  char* const field = arena.Allocate(begin + entry);
  char* to = field;
  *to++ = kAttrTag;
  to = internal::WriteField(internal::WriteVarint(to, entry), 1, name);
  *to++ = internal::MakeTag(2, internal::kBytesType);
  to = internal::WriteVarint(to, value_size);
  write(to);
  return AttrEntry(field, begin + entry,
                   absl::string_view(field + begin + header, name.size()), to);
}
inline AttrEntry MakeAttrEntry(absl::string_view name, absl::string_view value,
                               Arena& arena) {
  const auto write = [&](char* to) { internal::WriteBytes(to, value); };
  return MakeAttrEntry(name, value.size(), write, arena);
}

// Does what PassAttr() does, for an attribute whose size may take several
// bytes.
ABSL_ATTRIBUTE_NOINLINE inline const char* PassLongAttr(const char* p,
                                                        const char* end,
                                                        AttrEntry* attr) {
  const auto byte = [](const char* at) {
    return static_cast<unsigned char>(*at);
  };
  uint32_t size = byte(p + 1);
  const char* at = p + 2;
  if (ABSL_PREDICT_FALSE(size >= 0x80)) {
    at = internal::ReadLength(p + 1, end, &size);
    if (at == nullptr) return nullptr;
  }
  if (size < 4 || size > static_cast<size_t>(end - at)) return nullptr;
  end = at + size;
  const uint32_t name_size = byte(at + 1);
  if (*at != internal::MakeTag(1, internal::kBytesType) || name_size >= 0x80)
    return nullptr;
  const char* const name = at + 2;
  at = name + name_size;
  if (end - at < 2 || *at != internal::MakeTag(2, internal::kBytesType))
    return nullptr;
  size = byte(at + 1);
  at += 2;
  if (ABSL_PREDICT_FALSE(size >= 0x80)) {
    at = internal::ReadLength(at - 1, end, &size);
    if (at == nullptr) return nullptr;
  }
  if (size != static_cast<size_t>(end - at)) return nullptr;
  *attr = AttrEntry(p, static_cast<size_t>(end - p),
                    absl::string_view(name, name_size), at);
  return end;
}

// Reads an attribute that has the form of an AttrEntry and a name of less than
// 128 bytes. Returns the end of the attribute, or null if it has another form.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline const char* PassAttr(const char* p,
                                                         const char* end,
                                                         AttrEntry* attr) {
  const auto byte = [](const char* at) {
    return static_cast<unsigned char>(*at);
  };
  if (end - p < 6 || *p != kAttrTag) return nullptr;
  // Most attributes are short: their sizes take one byte each.
  const uint32_t size = byte(p + 1), name_size = byte(p + 3);
  if (ABSL_PREDICT_TRUE((size | name_size) < 0x80 &&
                        p[2] == internal::MakeTag(1, internal::kBytesType) &&
                        name_size + 4 <= size && size <= end - p - 2)) {
    const char* const value = p + 4 + name_size;
    if (ABSL_PREDICT_TRUE(value[0] ==
                              internal::MakeTag(2, internal::kBytesType) &&
                          byte(value + 1) == size - 4 - name_size)) {
      *attr = AttrEntry::Short(p, size + 2, name_size);
      return p + 2 + size;
    }
  }
  return PassLongAttr(p, end, attr);
}

// Iterates over all fields of a tail, in any form.
class TailReader {
 public:
  explicit TailReader(absl::string_view tail) : reader_(tail) {}

  bool Next() { return reader_.Next(); }
  // Returns the whole field, including the tag.
  absl::string_view field() const { return reader_.field(); }
  bool is_attr() const { return reader_.Is(kAttrField, internal::kBytesType); }
  bool is_device() const {
    return reader_.Is(kDeviceField, internal::kBytesType);
  }
  // Returns the attribute, rewritten in `memory` unless it has the form of an
  // AttrEntry. The last of several names wins; several values are merged.
  AttrEntry attr(Arena& memory) const {
    const absl::string_view bytes = field();
    AttrEntry attr;
    const char* const end = bytes.data() + bytes.size();
    if (PassAttr(bytes.data(), end, &attr) != nullptr) return attr;
    absl::string_view name;
    std::string value;
    for (internal::WireReader part(reader_.bytes()); part.Next();) {
      if (part.Is(1, internal::kBytesType)) name = part.bytes();
      if (!part.Is(2, internal::kBytesType)) continue;
      value.append(part.bytes().data(), part.bytes().size());
    }
    return MakeAttrEntry(name, value, memory);
  }

 private:
  internal::WireReader reader_;
};

// ReadAttrs() for fields that may have any form.
template <class F>
ABSL_ATTRIBUTE_NOINLINE bool ReadOtherAttrs(absl::string_view fields,
                                            Arena& memory, const F& f) {
  bool all = true;
  TailReader others(fields);
  while (others.Next()) {
    if (others.is_attr()) {
      f(others.attr(memory));
    } else {
      all = false;
    }
  }
  return all;
}

// Calls f(attr) for each attribute. Sets `device_size` to the size in bytes of
// the device field with which the tail begins, or 0. Returns false if the tail
// has other fields.
template <class F>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool ReadAttrs(absl::string_view tail,
                                                   Arena& memory, const F& f,
                                                   uint32_t* device_size) {
  const char* p = tail.data();
  const char* const end = p + tail.size();
  absl::string_view device;
  const char* next = PassField(p, end, kDeviceTag, &device);
  if (next != nullptr) p = next;
  *device_size = static_cast<uint32_t>(p - tail.data());
  AttrEntry attr;
  while ((next = PassAttr(p, end, &attr)) != nullptr) {
    f(attr);
    p = next;
  }
  if (ABSL_PREDICT_TRUE(p == end)) return true;
  return ReadOtherAttrs(absl::string_view(p, static_cast<size_t>(end - p)),
                        memory, f);
}
template <class F>
void ReadAttrs(absl::string_view tail, Arena& memory, const F& f) {
  uint32_t ignored;
  ReadAttrs(tail, memory, f, &ignored);
}

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_ATTR_ENTRY_H_
