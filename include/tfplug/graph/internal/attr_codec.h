// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_ATTR_CODEC_H_
#define TFPLUG_GRAPH_INTERNAL_ATTR_CODEC_H_

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/function.h"
#include "tfplug/base/internal/node_def.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/base/shape.h"

#pragma GCC visibility push(hidden)

// Reads and writes the parts of a serialized tensorflow.AttrValue.
namespace tfplug::graph_internal {

// Field numbers of AttrValue. Those of its ListValue are the same, except for
// kAttrFuncInList.
enum AttrValueField : uint32_t {
  kAttrList = 1,
  kAttrString = 2,
  kAttrInt = 3,
  kAttrFloat = 4,
  kAttrBool = 5,
  kAttrType = 6,
  kAttrShape = 7,
  kAttrTensor = 8,
  kAttrFuncInList = 9,
  kAttrPlaceholder = 9,
  kAttrFunc = 10,
};
constexpr internal::WireType AttrWireType(uint32_t field) {
  return field == kAttrFloat ? internal::kFixed32Type
         : field == kAttrInt || field == kAttrBool || field == kAttrType
             ? internal::kVarintType
             : internal::kBytesType;
}

// The oneof member of an AttrValue: the last one in the bytes, merged with the
// occurrences directly before it if they are messages of the same field.
class ParsedAttrValue {
 public:
  explicit ParsedAttrValue(absl::string_view attr_value) {
    for (internal::WireReader field(attr_value); field.Next();) {
      const auto id = static_cast<uint32_t>(field.number());
      if (id > kAttrFunc || field.type() != AttrWireType(id)) continue;
      const bool is_message = id == kAttrList || id == kAttrShape ||
                              id == kAttrTensor || id == kAttrFunc;
      if (is_message && id == field_) {
        if (merged_.empty()) merged_.assign(bytes_.data(), bytes_.size());
        merged_.append(field.bytes().data(), field.bytes().size());
        bytes_ = merged_;
        continue;
      }
      merged_.clear();
      field_ = id;
      bytes_ = field.bytes();
      varint_ = field.varint();
    }
  }
  ParsedAttrValue(const ParsedAttrValue&) = delete;
  ParsedAttrValue& operator=(const ParsedAttrValue&) = delete;

  uint32_t field() const { return field_; }  // 0: none.
  uint64_t varint() const { return varint_; }
  absl::string_view bytes() const { return bytes_; }

 private:
  uint32_t field_ = 0;
  uint64_t varint_ = 0;
  absl::string_view bytes_;
  std::string merged_;
};

inline char* WriteFixed32(char* to, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  for (int i = 0; i < 4; ++i) *to++ = static_cast<char>(bits >> 8 * i);
  return to;
}
inline void AppendFixed32(std::string& to, float value) {
  char bytes[4];
  WriteFixed32(bytes, value);
  to.append(bytes, sizeof(bytes));
}
inline float ReadFixed32(absl::string_view bytes) {
  uint32_t bits = 0;
  for (size_t i = 0; i < 4; ++i) {
    bits |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i]))
            << 8 * i;
  }
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

// Appends a length-delimited field, whose bytes append() appends to `to`.
template <class F>
void AppendNested(std::string& to, uint32_t field, const F& append) {
  internal::AppendVarint(to, internal::MakeTag(field, internal::kBytesType));
  const size_t begin = to.size();
  to += '\0';  // Reserved for the length, which usually takes one byte.
  append();
  const size_t size = to.size() - begin - 1;
  if (size < 0x80) {
    to[begin] = static_cast<char>(size);
    return;
  }
  std::string length;
  internal::AppendVarint(length, size);
  to.replace(begin, 1, length);
}

inline void AppendShape(std::string& to, const Shape& shape) {
  for (int64_t size : shape.dims()) {
    AppendNested(to, 2, [&] {
      if (size != 0) internal::AppendField(to, 1, static_cast<uint64_t>(size));
    });
  }
}
inline void AppendShape(std::string& to, const PartialShape& shape) {
  if (!shape.has_rank()) return internal::AppendField(to, 3, uint64_t{1});
  AppendShape(to, shape.shape());
}

// Appends a TensorProto. `elements` are in row-major order, as in host memory.
inline void AppendTensor(std::string& to, DataType dtype, const Shape& shape,
                         absl::string_view elements) {
  internal::AppendField(to, 1, static_cast<uint64_t>(dtype));
  AppendNested(to, 2, [&] { AppendShape(to, shape); });
  internal::AppendField(to, 4, elements);
}

// The encoding of a T in an AttrValue: the type's name in error messages, its
// field in AttrValue and in ListValue, and conversions. Decode() takes the
// field's varint or bytes. Encode() returns the varint; types that are stored
// as bytes have Append() instead.
template <class T, class Enable = void>
struct AttrTraits {
  static_assert(sizeof(T) == 0,
                "tfplug: an attribute is bool, int32_t, int64_t, float, "
                "DataType, std::string, Shape, PartialShape, Function, or a "
                "std::vector of one of these; for tensors, use "
                "tfplug::Constant");
};

template <>
struct AttrTraits<bool> {
  static constexpr char kName[] = "bool";
  static constexpr uint32_t kField = kAttrBool, kListField = kAttrBool;
  static std::optional<bool> Decode(uint64_t value) { return value != 0; }
  static uint64_t Encode(bool value) { return value; }
};
template <>
struct AttrTraits<int64_t> {
  static constexpr char kName[] = "int";
  static constexpr uint32_t kField = kAttrInt, kListField = kAttrInt;
  static std::optional<int64_t> Decode(uint64_t value) {
    return static_cast<int64_t>(value);
  }
  static uint64_t Encode(int64_t value) { return static_cast<uint64_t>(value); }
};
template <>
struct AttrTraits<int32_t> {
  static constexpr char kName[] = "int32";
  static constexpr uint32_t kField = kAttrInt, kListField = kAttrInt;
  static std::optional<int32_t> Decode(uint64_t value) {
    const auto wide = static_cast<int64_t>(value);
    const auto narrow = static_cast<int32_t>(wide);
    return narrow == wide ? std::optional<int32_t>(narrow) : std::nullopt;
  }
  static uint64_t Encode(int32_t value) {
    return AttrTraits<int64_t>::Encode(value);
  }
};
template <>
struct AttrTraits<DataType> {
  static constexpr char kName[] = "type";
  static constexpr uint32_t kField = kAttrType, kListField = kAttrType;
  static std::optional<DataType> Decode(uint64_t value) {
    return static_cast<DataType>(static_cast<int32_t>(value));
  }
  static uint64_t Encode(DataType value) {
    return AttrTraits<int64_t>::Encode(static_cast<int>(value));
  }
};
template <>
struct AttrTraits<float> {
  static constexpr char kName[] = "float";
  static constexpr uint32_t kField = kAttrFloat, kListField = kAttrFloat;
  static std::optional<float> Decode(absl::string_view bytes) {
    return ReadFixed32(bytes);
  }
  static void Append(std::string& to, float value) { AppendFixed32(to, value); }
};
template <>
struct AttrTraits<std::string> {
  static constexpr char kName[] = "string";
  static constexpr uint32_t kField = kAttrString, kListField = kAttrString;
  static std::optional<std::string> Decode(absl::string_view bytes) {
    return std::string(bytes);
  }
  static void Append(std::string& to, absl::string_view value) {
    to.append(value.data(), value.size());
  }
};
template <>
struct AttrTraits<PartialShape> {
  static constexpr char kName[] = "shape";
  static constexpr uint32_t kField = kAttrShape, kListField = kAttrShape;
  static std::optional<PartialShape> Decode(absl::string_view bytes) {
    return internal::ParseShape(bytes);
  }
  static void Append(std::string& to, const PartialShape& value) {
    AppendShape(to, value);
  }
};
template <>
struct AttrTraits<Shape> {
  static constexpr char kName[] = "fully known shape";
  static constexpr uint32_t kField = kAttrShape, kListField = kAttrShape;
  static std::optional<Shape> Decode(absl::string_view bytes) {
    const PartialShape shape = internal::ParseShape(bytes);
    if (!shape.is_fully_known()) return std::nullopt;
    return shape.shape();
  }
  static void Append(std::string& to, const Shape& value) {
    AppendShape(to, value);
  }
};
template <>
struct AttrTraits<Function> {
  static constexpr char kName[] = "func";
  static constexpr uint32_t kField = kAttrFunc, kListField = kAttrFuncInList;
  static std::optional<Function> Decode(absl::string_view bytes) {
    Function function{{}, std::string(bytes)};
    for (internal::WireReader field(bytes); field.Next();) {
      if (field.Is(1, internal::kBytesType))
        function.name = std::string(field.bytes());
    }
    return function;
  }
  // A Function constructed from a name alone has no name_attr_list.
  static void Append(std::string& to, const Function& value) {
    if (value.name_attr_list.empty())
      return internal::AppendField(to, 1, value.name);
    to += value.name_attr_list;
  }
};

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_ATTR_CODEC_H_
