// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_ATTR_VALUE_H_
#define TFPLUG_GRAPH_ATTR_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/graph/internal/attr_codec.h"

// A serialised tensorflow.AttrValue as a C++ value, and back.
namespace tfplug::internal {

// Reading and writing T: Append() puts an AttrValue behind what is in a string;
// Decode() gives nothing where the value is of another
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
  static void Append(std::string& to, const T& value) {
    if constexpr (AttrWireType(Type::kField) == kBytesType) {
      AppendNested(to, Type::kField, [&] { Type::Append(to, value); });
    } else {
      AppendVarint(to, MakeTag(Type::kField, AttrWireType(Type::kField)));
      if constexpr (AttrWireType(Type::kField) == kVarintType) {
        AppendVarint(to, Type::To(value));
      } else {
        Type::Append(to, value);
      }
    }
  }
  static std::string Encode(const T& value) {
    std::string attr_value;
    Append(attr_value, value);
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

  static void Append(std::string& to, const std::vector<T>& values) {
    AppendNested(to, kAttrList, [&] {
      if constexpr (kType == kBytesType) {
        for (const T& value : values) {
          AppendNested(to, Type::kListField, [&] { Type::Append(to, value); });
        }
      } else if (!values.empty()) {
        AppendNested(to, Type::kListField, [&] { AppendPacked(to, values); });
      }
    });
  }

 private:
  static void AppendPacked(std::string& to, const std::vector<T>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if constexpr (kType == kVarintType) {
        AppendVarint(to, Type::To(values[i]));
      } else {
        Type::Append(to, values[i]);
      }
    }
  }
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
