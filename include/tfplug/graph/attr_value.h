// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_ATTR_VALUE_H_
#define TFPLUG_GRAPH_ATTR_VALUE_H_

#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/data_type.h"
#include "tfplug/function.h"
#include "tfplug/internal/node_def.h"
#include "tfplug/internal/wire.h"
#include "tfplug/shape.h"

// A serialised tensorflow.AttrValue as a C++ value, and back.
namespace tfplug::internal {

// Fields of AttrValue; but for kFuncInList the same in AttrValue.ListValue.
enum AttrMember : uint32_t {
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
constexpr WireType AttrWireType(uint32_t field) {
  return field == kAttrFloat ? kFixed32Type
         : field == kAttrInt || field == kAttrBool || field == kAttrType
             ? kVarintType
             : kBytesType;
}

// What an AttrValue holds: the last of its members; the same message several
// times on end is one, merged.
class AttrContent {
 public:
  explicit AttrContent(absl::string_view attr_value) {
    for (WireReader field(attr_value); field.Next();) {
      const auto number = static_cast<uint32_t>(field.number());
      if (number > kAttrFunc || field.type() != AttrWireType(number)) continue;
      const bool is_message = number == kAttrList || number == kAttrShape ||
                              number == kAttrTensor || number == kAttrFunc;
      if (is_message && number == field_) {
        if (merged_.empty()) merged_.assign(bytes_.data(), bytes_.size());
        merged_.append(field.bytes().data(), field.bytes().size());
        bytes_ = merged_;
        continue;
      }
      merged_.clear();
      field_ = number;
      bytes_ = field.bytes();
      number_ = field.varint();
    }
  }
  AttrContent(const AttrContent&) = delete;
  AttrContent& operator=(const AttrContent&) = delete;

  uint32_t field() const { return field_; }  // 0: empty.
  uint64_t number() const { return number_; }
  absl::string_view bytes() const { return bytes_; }

 private:
  uint32_t field_ = 0;
  uint64_t number_ = 0;
  absl::string_view bytes_;
  std::string merged_;
};

inline void AppendFixed32(std::string& to, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  for (int i = 0; i < 4; ++i) to += static_cast<char>(bits >> 8 * i);
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

inline std::string SerializeShape(const PartialShape& shape) {
  std::string proto;
  if (!shape.has_rank()) {
    AppendField(proto, 3, uint64_t{1});
    return proto;
  }
  for (int64_t size : shape.shape().dims()) {
    std::string dim;
    if (size != 0) AppendField(dim, 1, static_cast<uint64_t>(size));
    AppendField(proto, 2, dim);
  }
  return proto;
}

// How a T stands in an AttrValue: the words for it in an error, its field,
// the one in a list, From what the field holds, and To it. One specialisation
// a type; numbers take and give a varint, the rest the field's bytes.
template <class T, class Enable = void>
struct AttrForm {
  static_assert(sizeof(T) == 0,
                "tfplug: an attribute is bool, int32_t, int64_t, float, "
                "DataType, std::string, Shape, PartialShape, Function, or a "
                "std::vector of one of these; tensors: tfplug::Constant");
};

template <>
struct AttrForm<bool> {
  static constexpr char kKind[] = "bool";
  static constexpr uint32_t kField = kAttrBool, kListField = kAttrBool;
  static std::optional<bool> From(uint64_t value) { return value != 0; }
  static uint64_t To(bool value) { return value; }
};
template <>
struct AttrForm<int64_t> {
  static constexpr char kKind[] = "int";
  static constexpr uint32_t kField = kAttrInt, kListField = kAttrInt;
  static std::optional<int64_t> From(uint64_t value) {
    return static_cast<int64_t>(value);
  }
  static uint64_t To(int64_t value) { return static_cast<uint64_t>(value); }
};
template <>
struct AttrForm<int32_t> {
  static constexpr char kKind[] = "int of 32 bits";
  static constexpr uint32_t kField = kAttrInt, kListField = kAttrInt;
  static std::optional<int32_t> From(uint64_t value) {
    const auto wide = static_cast<int64_t>(value);
    const auto narrow = static_cast<int32_t>(wide);
    return narrow == wide ? std::optional<int32_t>(narrow) : std::nullopt;
  }
  static uint64_t To(int32_t value) { return AttrForm<int64_t>::To(value); }
};
template <>
struct AttrForm<DataType> {
  static constexpr char kKind[] = "type";
  static constexpr uint32_t kField = kAttrType, kListField = kAttrType;
  static std::optional<DataType> From(uint64_t value) {
    return static_cast<DataType>(static_cast<int32_t>(value));
  }
  static uint64_t To(DataType value) {
    return AttrForm<int64_t>::To(static_cast<int>(value));
  }
};
template <>
struct AttrForm<float> {
  static constexpr char kKind[] = "float";
  static constexpr uint32_t kField = kAttrFloat, kListField = kAttrFloat;
  static std::optional<float> From(absl::string_view bytes) {
    return ReadFixed32(bytes);
  }
  static std::string To(float value) {
    std::string bytes;
    AppendFixed32(bytes, value);
    return bytes;
  }
};
template <>
struct AttrForm<std::string> {
  static constexpr char kKind[] = "string";
  static constexpr uint32_t kField = kAttrString, kListField = kAttrString;
  static std::optional<std::string> From(absl::string_view bytes) {
    return std::string(bytes);
  }
  static absl::string_view To(absl::string_view value) { return value; }
};
template <>
struct AttrForm<PartialShape> {
  static constexpr char kKind[] = "shape";
  static constexpr uint32_t kField = kAttrShape, kListField = kAttrShape;
  static std::optional<PartialShape> From(absl::string_view bytes) {
    return ParseShape(bytes);
  }
  static std::string To(const PartialShape& value) {
    return SerializeShape(value);
  }
};
template <>
struct AttrForm<Shape> {
  static constexpr char kKind[] = "shape, fully known";
  static constexpr uint32_t kField = kAttrShape, kListField = kAttrShape;
  static std::optional<Shape> From(absl::string_view bytes) {
    const PartialShape shape = ParseShape(bytes);
    if (!shape.is_fully_known()) return std::nullopt;
    return shape.shape();
  }
  static std::string To(const Shape& value) { return SerializeShape(value); }
};
template <>
struct AttrForm<Function> {
  static constexpr char kKind[] = "func";
  static constexpr uint32_t kField = kAttrFunc, kListField = kAttrFuncInList;
  static std::optional<Function> From(absl::string_view bytes) {
    Function function{{}, std::string(bytes)};
    for (WireReader field(bytes); field.Next();) {
      if (field.Is(1, kBytesType)) function.name = std::string(field.bytes());
    }
    return function;
  }
  // One with nothing but a name has that of its name_attr_list.
  static std::string To(const Function& value) {
    if (!value.name_attr_list.empty()) return value.name_attr_list;
    std::string name_attr_list;
    AppendField(name_attr_list, 1, value.name);
    return name_attr_list;
  }
};
// Reading and writing T. Decode gives nothing where the value is of another
// kind, or does not fit.
template <class T>
struct AttrCodec {
  using Type = AttrForm<T>;
  static std::string Kind() { return Type::kKind; }

  static std::optional<T> Decode(absl::string_view attr_value) {
    const AttrContent content(attr_value);
    if (content.field() != Type::kField) return std::nullopt;
    if constexpr (AttrWireType(Type::kField) == kVarintType) {
      return Type::From(content.number());
    } else {
      return Type::From(content.bytes());
    }
  }
  static std::string Encode(const T& value) {
    std::string attr_value;
    if constexpr (AttrWireType(Type::kField) == kBytesType) {
      AppendField(attr_value, static_cast<int>(Type::kField), Type::To(value));
    } else {
      AppendVarint(attr_value,
                   MakeTag(Type::kField, AttrWireType(Type::kField)));
      if constexpr (AttrWireType(Type::kField) == kVarintType) {
        AppendVarint(attr_value, Type::To(value));
      } else {
        attr_value += Type::To(value);
      }
    }
    return attr_value;
  }
};

template <class T>
struct AttrCodec<std::vector<T>> {
  using Type = AttrForm<T>;
  static constexpr WireType kType = AttrWireType(Type::kListField);
  static std::string Kind() { return std::string("list(") + Type::kKind + ")"; }

  static std::optional<std::vector<T>> Decode(absl::string_view attr_value) {
    const AttrContent content(attr_value);
    if (content.field() != kAttrList) return std::nullopt;
    std::vector<T> values;
    bool others = false, fit = true;
    const auto add = [&](const std::optional<T>& value) {
      if (value.has_value()) {
        values.push_back(*value);
      } else {
        fit = false;
      }
    };
    WireReader field(content.bytes());
    while (field.Next()) {
      if (field.Is(Type::kListField, kType)) {
        if constexpr (kType == kVarintType) {
          add(Type::From(field.varint()));
        } else {
          add(Type::From(field.bytes()));
        }
      } else if (kType != kBytesType &&
                 field.Is(Type::kListField, kBytesType)) {
        if constexpr (kType != kBytesType) fit &= Unpack(field.bytes(), add);
      } else {
        others = true;
      }
    }
    if (!field.ok() || !fit || (values.empty() && others)) return std::nullopt;
    return values;
  }

  static std::string Encode(const std::vector<T>& values) {
    std::string list, packed;
    for (size_t i = 0; i < values.size(); ++i) {
      if constexpr (kType == kBytesType) {
        AppendField(list, static_cast<int>(Type::kListField),
                    Type::To(values[i]));
      } else if constexpr (kType == kVarintType) {
        AppendVarint(packed, Type::To(values[i]));
      } else {
        packed += Type::To(values[i]);
      }
    }
    if (!packed.empty()) {
      AppendField(list, static_cast<int>(Type::kListField), packed);
    }
    std::string attr_value;
    AppendField(attr_value, kAttrList, list);
    return attr_value;
  }

 private:
  template <class F>
  static bool Unpack(absl::string_view bytes, const F& add) {
    const char* p = bytes.data();
    const char* const end = p + bytes.size();
    while (p < end) {
      if constexpr (kType == kVarintType) {
        uint64_t value = 0;
        if ((p = ReadVarint(p, end, &value)) == nullptr) return false;
        add(Type::From(value));
      } else {
        if (end - p < 4) return false;
        add(Type::From(absl::string_view(p, 4)));
        p += 4;
      }
    }
    return true;
  }
};

// What SetAttr takes for what: literals are strings, numbers int or float.
template <class T>
using StoredAttr = std::conditional_t<
    std::is_convertible_v<const T&, absl::string_view>, std::string,
    std::conditional_t<
        std::is_integral_v<T> && !std::is_same_v<T, bool>, int64_t,
        std::conditional_t<std::is_floating_point_v<T>, float, T>>>;

}  // namespace tfplug::internal

#endif  // TFPLUG_GRAPH_ATTR_VALUE_H_
