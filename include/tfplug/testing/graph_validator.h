// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_GRAPH_VALIDATOR_H_
#define TFPLUG_TESTING_GRAPH_VALIDATOR_H_

#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/testing/graph_schema.h"

namespace tfplug::testing {
namespace internal {

// The bytes from `at` to `end`, read as protobuf 3.21 reads them. Each function
// returns false and leaves `at` at the offence where protobuf would stop.
struct WireReader {
  const char* at;
  const char* end;

  size_t left() const { return static_cast<size_t>(end - at); }

  // Up to `max_bytes`; bits above the 64th are dropped, as protobuf does.
  bool ReadVarint(int max_bytes, uint64_t* value) {
    uint64_t result = 0;
    const char* p = at;
    for (int i = 0; i < max_bytes && p < end; ++i) {
      const uint64_t byte = static_cast<unsigned char>(*p++);
      result |= (byte & 127) << (7 * i);
      if (byte < 128) {
        at = p;
        *value = result;
        return true;
      }
    }
    return false;
  }
  // Five bytes at most, of which 32 bits count; field number 0 is none.
  bool ReadTag(uint32_t* tag) {
    const char* start = at;
    uint64_t value;
    if (!ReadVarint(5, &value)) return false;
    *tag = static_cast<uint32_t>(value);
    if (*tag >> 3 != 0) return true;
    at = start;
    return false;
  }
  // Five bytes at most, and nothing longer than what is left.
  bool ReadLength(size_t* length) {
    const char* start = at;
    uint64_t value;
    if (!ReadVarint(5, &value)) return false;
    *length = static_cast<size_t>(value);
    if (value <= left() && value <= INT_MAX - 16) return true;
    at = start;
    return false;
  }
  bool Skip(size_t bytes) {
    if (bytes > left()) return false;
    at += bytes;
    return true;
  }
};

// The size in bytes of the character that `text` begins with; 0 if there is
// none: a wrong or missing byte, an overlong form, a surrogate, or more than
// U+10FFFF.
inline size_t Utf8Size(absl::string_view text) {
  const auto byte = [text](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto follows = [byte](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const int first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4 || !follows(1)) return 0;
  if (first < 0xE0) return 2;
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F) ||
      !follows(2)) {
    return 0;
  }
  return first < 0xF0 ? 3 : follows(3) ? 4 : 0;
}

class GraphValidator {
 public:
  explicit GraphValidator(absl::string_view graph_def) : bytes_(graph_def) {}

  absl::Status Run() {
    if (bytes_.size() > INT_MAX) {
      return absl::InvalidArgumentError(
          absl::StrCat("not a GraphDef: ", bytes_.size(),
                       " bytes, and protobuf parses ", INT_MAX, " at most"));
    }
    WireReader reader{bytes_.data(), bytes_.data() + bytes_.size()};
    if (ReadMessage(reader, MessageType::kGraphDef, kMaxDepth)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("not a GraphDef: ", problem_, " at byte ",
                     offence_ - bytes_.data(), ", in GraphDef", path_));
  }

 private:
  // Of messages and groups within each other, below the GraphDef.
  static constexpr int kMaxDepth = 100;
  enum WireType { kVarint, kFixed64, kLength, kStart, kEnd, kFixed32 };

  bool Fail(const WireReader& reader, const char* problem) {
    problem_ = problem;
    offence_ = reader.at;
    return false;
  }

  // To the reader's end.
  bool ReadMessage(WireReader& reader, MessageType type, int depth) {
    const MessageSchema& schema = kMessages[static_cast<int>(type)];
    while (reader.left() > 0) {
      uint32_t tag;
      if (!reader.ReadTag(&tag)) return Fail(reader, "a wrong tag");
      const FieldSchema* field = nullptr;
      for (int i = 0; i < schema.num_fields; ++i) {
        if (schema.fields[i].number == tag >> 3) field = &schema.fields[i];
      }
      const int wire_type = tag & 7;
      // A wire type that does not fit makes the field an unknown one.
      const bool known = field != nullptr && Fits(*field, wire_type);
      if (known ? !ReadField(reader, *field, wire_type, depth)
                : !SkipField(reader, tag, depth)) {
        if (field != nullptr) path_ = absl::StrCat(".", field->name, path_);
        return false;
      }
    }
    return true;
  }

  static bool Fits(const FieldSchema& field, int wire_type) {
    switch (field.kind) {
      case FieldKind::kVarint:
        return wire_type == kVarint || (field.repeated && wire_type == kLength);
      case FieldKind::kFixed32:
        return wire_type == kFixed32 ||
               (field.repeated && wire_type == kLength);
      case FieldKind::kFixed64:
        return wire_type == kFixed64 ||
               (field.repeated && wire_type == kLength);
      default:
        return wire_type == kLength;
    }
  }

  bool ReadField(WireReader& reader, const FieldSchema& field, int wire_type,
                 int depth) {
    if (wire_type != kLength) return SkipScalar(reader, wire_type);
    size_t length;
    if (!reader.ReadLength(&length)) return Fail(reader, "a wrong length");
    WireReader inner{reader.at, reader.at + length};
    reader.at += length;
    switch (field.kind) {
      case FieldKind::kMessage:
        if (depth == 0) return Fail(inner, "more than 100 messages deep");
        return ReadMessage(inner, field.message, depth - 1);
      case FieldKind::kString:
        for (size_t size; inner.left() > 0; inner.at += size) {
          size = Utf8Size(absl::string_view(inner.at, inner.left()));
          if (size == 0) return Fail(inner, "a string that is not UTF-8");
        }
        return true;
      case FieldKind::kVarint:
        for (uint64_t value; inner.left() > 0;) {
          if (!inner.ReadVarint(10, &value)) {
            return Fail(inner, "a wrong varint in a packed list");
          }
        }
        return true;
      case FieldKind::kFixed32:
        return length % 4 == 0 || Fail(inner, "a packed list of odd length");
      case FieldKind::kFixed64:
        return length % 8 == 0 || Fail(inner, "a packed list of odd length");
      default:
        return true;
    }
  }

  bool SkipScalar(WireReader& reader, int wire_type) {
    uint64_t value;
    if (wire_type == kVarint) {
      return reader.ReadVarint(10, &value) || Fail(reader, "a wrong varint");
    }
    return reader.Skip(wire_type == kFixed32 ? 4 : 8) ||
           Fail(reader, "a number cut off");
  }

  bool SkipField(WireReader& reader, uint32_t tag, int depth) {
    size_t length;
    switch (tag & 7) {
      case kVarint:
      case kFixed32:
      case kFixed64:
        return SkipScalar(reader, tag & 7);
      case kLength:
        return (reader.ReadLength(&length) && reader.Skip(length)) ||
               Fail(reader, "a wrong length");
      case kStart:
        if (depth == 0) return Fail(reader, "more than 100 groups deep");
        return SkipGroup(reader, tag + kEnd - kStart, depth - 1);
      case kEnd:
        return Fail(reader, "the end of a group that did not begin");
      default:
        return Fail(reader, "a wrong wire type");
    }
  }

  bool SkipGroup(WireReader& reader, uint32_t end_tag, int depth) {
    while (reader.left() > 0) {
      uint32_t tag;
      if (!reader.ReadTag(&tag)) return Fail(reader, "a wrong tag");
      if (tag == end_tag) return true;
      if (!SkipField(reader, tag, depth)) return false;
    }
    return Fail(reader, "a group that does not end");
  }

  const absl::string_view bytes_;
  const char* problem_ = "";
  const char* offence_ = nullptr;
  std::string path_;
};

}  // namespace internal

// OK for exactly the bytes that protobuf 3.21 parses as a GraphDef; otherwise
// INVALID_ARGUMENT that says what is wrong, at which byte, in which field.
// Looks at every byte, where Graph::Parse looks at what it needs: for tests,
// and to find out what is wrong with a graph. Any thread; needs no libprotobuf.
inline absl::Status ValidateGraphDef(absl::string_view graph_def) {
  return internal::GraphValidator(graph_def).Run();
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTING_GRAPH_VALIDATOR_H_
