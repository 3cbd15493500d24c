// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_WIRE_H_
#define TFPLUG_BASE_INTERNAL_WIRE_H_

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "absl/base/optimization.h"
#include "absl/strings/string_view.h"

#pragma GCC visibility push(hidden)

// Reads and writes the wire format of protocol buffers. The readers reject
// exactly the bytes that libprotobuf rejects.
namespace tfplug::internal {

// The low three bits of a tag; the other bits are the field number.
enum WireType : uint32_t {
  kVarintType = 0,
  kFixed64Type = 1,
  kBytesType = 2,
  kGroupType = 3,
  kEndGroupType = 4,
  kFixed32Type = 5,
};
constexpr uint32_t MakeTag(uint32_t number, WireType type) {
  return number << 3 | type;
}

// Each of the readers below reads an item at `p` and returns its end, or null
// if the item is malformed or extends beyond `end`.

// Reads a varint of up to 64 bits: at most ten bytes, even if its encoding is
// longer than necessary.
inline const char* ReadVarint(const char* p, const char* end, uint64_t* value) {
  uint64_t result = 0;
  for (int shift = 0; shift < 70 && p < end; shift += 7) {
    const auto byte = static_cast<unsigned char>(*p++);
    result |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *value = result;
      return p;
    }
  }
  return nullptr;
}

// Reads a tag of at most five bytes, and keeps its low 32 bits. Rejects field
// 0.
inline const char* ReadTag(const char* p, const char* end, uint32_t* tag) {
  uint64_t value = 0;
  const char* const after = ReadVarint(p, end, &value);
  if (after == nullptr || after - p > 5) return nullptr;
  *tag = static_cast<uint32_t>(value);
  return *tag >> 3 != 0 ? after : nullptr;
}

// Reads a length of at most five bytes. That many bytes must follow before
// `end`.
inline const char* ReadLength(const char* p, const char* end,
                              uint32_t* length) {
  const auto byte = [p](int i) { return static_cast<unsigned char>(p[i]); };
  if (ABSL_PREDICT_FALSE(end - p < 2)) {
    if (p == end || byte(0) >= 0x80) return nullptr;
    *length = byte(0);
    p += 1;
  } else if (byte(0) < 0x80) {
    *length = byte(0);
    p += 1;
  } else if (byte(1) < 0x80) {
    *length = (byte(0) & 0x7fu) | static_cast<uint32_t>(byte(1)) << 7;
    p += 2;
  } else {
    uint64_t value = 0;
    const char* const after = ReadVarint(p, end, &value);
    if (after == nullptr || after - p > 5 || value > INT32_MAX - 16) {
      return nullptr;
    }
    p = after;
    *length = static_cast<uint32_t>(value);
  }
  return *length <= static_cast<size_t>(end - p) ? p : nullptr;
}

// The default limit of libprotobuf for nested messages and groups.
inline constexpr int kMaxWireDepth = 100;

// Skips the value that follows `tag`; a group is skipped to its end, without
// recursion.
inline const char* SkipValue(const char* p, const char* end, uint32_t tag,
                             int depth = kMaxWireDepth) {
  uint32_t groups[kMaxWireDepth];
  int open = 0;
  while (true) {
    uint64_t number;
    uint32_t length;
    switch (tag & 7) {
      case kVarintType:
        p = ReadVarint(p, end, &number);
        break;
      case kFixed64Type:
        p = end - p >= 8 ? p + 8 : nullptr;
        break;
      case kBytesType:
        p = ReadLength(p, end, &length);
        if (p != nullptr) p += length;
        break;
      case kGroupType:
        if (open >= depth) return nullptr;
        groups[open++] = tag >> 3;
        break;
      case kEndGroupType:
        if (open == 0 || groups[--open] != tag >> 3) return nullptr;
        break;
      case kFixed32Type:
        p = end - p >= 4 ? p + 4 : nullptr;
        break;
      default:
        return nullptr;
    }
    if (p == nullptr || open == 0) return p;
    p = ReadTag(p, end, &tag);
    if (p == nullptr) return nullptr;
  }
}

// Iterates over the fields of a message.
class WireReader {
 public:
  explicit WireReader(absl::string_view bytes)
      : p_(bytes.data()), end_(p_ + bytes.size()) {}

  // Advances to the next field. Returns false at the end, and if the bytes are
  // malformed; ok() distinguishes the two.
  bool Next() {
    if (p_ == end_ || !ok_) return false;
    field_ = p_;
    value_ = ReadTag(p_, end_, &tag_);
    p_ = value_ != nullptr ? SkipValue(value_, end_, tag_) : nullptr;
    ok_ = p_ != nullptr;
    return ok_;
  }
  bool ok() const { return ok_; }

  int number() const { return static_cast<int>(tag_ >> 3); }
  WireType type() const { return static_cast<WireType>(tag_ & 7); }
  // Returns whether this is field `number` with wire type `type`. Protocol
  // buffers treat a field with another wire type as unknown.
  bool Is(uint32_t number, WireType type) const {
    return tag_ == MakeTag(number, type);
  }
  // Returns the value of a varint field; 0 for other wire types.
  uint64_t varint() const {
    uint64_t value = 0;
    if (type() == kVarintType) ReadVarint(value_, end_, &value);
    return value;
  }
  // Returns the bytes of a field that is not a varint.
  absl::string_view bytes() const {
    const char* from = value_;
    uint32_t length;
    if (type() == kBytesType) from = ReadLength(from, end_, &length);
    return absl::string_view(from, static_cast<size_t>(p_ - from));
  }
  // Returns the whole field, including the tag.
  absl::string_view field() const {
    return absl::string_view(field_, static_cast<size_t>(p_ - field_));
  }

 private:
  const char* p_;
  const char* end_;
  const char* field_ = nullptr;
  const char* value_ = nullptr;
  bool ok_ = true;
  uint32_t tag_ = 0;
};

// Returns the bytes of the field `number`, a message, or nullopt if it is
// absent. Concatenates several occurrences, which merges the messages.
inline std::optional<std::string> MessageField(absl::string_view message,
                                               uint32_t number) {
  std::optional<std::string> merged;
  for (WireReader field(message); field.Next();) {
    if (!field.Is(number, kBytesType)) continue;
    if (!merged.has_value()) merged.emplace();
    merged->append(field.bytes().data(), field.bytes().size());
  }
  return merged;
}

inline size_t VarintSize(uint64_t value) {
  size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}
// Returns the encoded size of a field with a number below 16 and `size` bytes
// of contents.
inline size_t BytesFieldSize(size_t size) {
  return 1 + VarintSize(size) + size;
}

// Each of the writers below returns the end of the bytes that it wrote. They do
// not check whether `to` has enough space.
inline char* WriteVarint(char* to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}
inline char* WriteBytes(char* to, absl::string_view bytes) {
  const char* const from = bytes.data();
  const size_t size = bytes.size();
  // Two pieces that may overlap are faster than a call of memcpy.
  const auto copy_pieces = [&](auto piece) {
    auto last = piece;
    memcpy(&piece, from, sizeof(piece));
    memcpy(&last, from + size - sizeof(piece), sizeof(piece));
    memcpy(to, &piece, sizeof(piece));
    memcpy(to + size - sizeof(piece), &last, sizeof(piece));
  };
  typedef uint64_t Words __attribute__((vector_size(16)));
  if (size > 32) {
    memcpy(to, from, size);
  } else if (size >= 16) {
    copy_pieces(Words{});
  } else if (size >= 8) {
    copy_pieces(uint64_t{});
  } else if (size >= 4) {
    copy_pieces(uint32_t{});
  } else if (size > 0) {
    to[0] = from[0];
    to[size / 2] = from[size / 2];
    to[size - 1] = from[size - 1];
  }
  return to + size;
}
inline char* WriteField(char* to, uint32_t number, absl::string_view value) {
  to = WriteVarint(to, MakeTag(number, kBytesType));
  return WriteBytes(WriteVarint(to, value.size()), value);
}

inline void AppendVarint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}
inline void AppendField(std::string& to, int number, uint64_t value) {
  AppendVarint(to, MakeTag(static_cast<uint32_t>(number), kVarintType));
  AppendVarint(to, value);
}
inline void AppendField(std::string& to, int number, absl::string_view value) {
  AppendVarint(to, MakeTag(static_cast<uint32_t>(number), kBytesType));
  AppendVarint(to, value.size());
  to.append(value.data(), value.size());
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_WIRE_H_
