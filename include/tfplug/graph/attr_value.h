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

#pragma GCC visibility push(hidden)

// Converts between serialized tensorflow.AttrValues and C++ values.
namespace tfplug::graph {

// Encodes and decodes a T. Decode() returns nullopt if the AttrValue holds
// another type or a value that does not fit into T.
template <class T>
struct AttrCodec {
  using Traits = graph_internal::AttrTraits<T>;
  static std::string TypeName() { return Traits::kName; }

  static std::optional<T> Decode(absl::string_view attr_value) {
    const graph_internal::ParsedAttrValue parsed(attr_value);
    if (parsed.field() != Traits::kField) return std::nullopt;
    if constexpr (graph_internal::AttrWireType(Traits::kField) ==
                  internal::kVarintType) {
      return Traits::Decode(parsed.varint());
    } else {
      return Traits::Decode(parsed.bytes());
    }
  }
  static void Append(std::string& to, const T& value) {
    if constexpr (kIsScalar) {
      char bytes[kMaxScalar];
      to.append(bytes, static_cast<size_t>(Write(bytes, value) - bytes));
    } else {
      graph_internal::AppendNested(to, Traits::kField,
                                   [&] { Traits::Append(to, value); });
    }
  }
  // Whether the size of an encoded T is at most kMaxScalar.
  static constexpr bool kIsScalar =
      graph_internal::AttrWireType(Traits::kField) != internal::kBytesType;
  static constexpr size_t kMaxScalar = 11;  // A tag and a varint.
  // Writes a scalar to `to`, and returns its end.
  static char* Write(char* to, const T& value) {
    *to++ = static_cast<char>(internal::MakeTag(
        Traits::kField, graph_internal::AttrWireType(Traits::kField)));
    if constexpr (graph_internal::AttrWireType(Traits::kField) ==
                  internal::kVarintType) {
      return internal::WriteVarint(to, Traits::Encode(value));
    } else {
      return graph_internal::WriteFixed32(to, value);
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
  using Traits = graph_internal::AttrTraits<T>;
  static constexpr bool kIsScalar = false;
  static constexpr internal::WireType kType =
      graph_internal::AttrWireType(Traits::kListField);
  static std::string TypeName() {
    return std::string("list(") + Traits::kName + ")";
  }

  static std::optional<std::vector<T>> Decode(absl::string_view attr_value) {
    const graph_internal::ParsedAttrValue parsed(attr_value);
    if (parsed.field() != graph_internal::kAttrList) return std::nullopt;
    std::vector<T> values;
    bool has_others = false, fits = true;
    const auto add = [&](const std::optional<T>& value) {
      if (value.has_value()) {
        values.push_back(*value);
      } else {
        fits = false;
      }
    };
    internal::WireReader field(parsed.bytes());
    while (field.Next()) {
      if (field.Is(Traits::kListField, kType)) {
        if constexpr (kType == internal::kVarintType) {
          add(Traits::Decode(field.varint()));
        } else {
          add(Traits::Decode(field.bytes()));
        }
      } else if (kType != internal::kBytesType &&
                 field.Is(Traits::kListField, internal::kBytesType)) {
        if constexpr (kType != internal::kBytesType)
          fits &= Unpack(field.bytes(), add);
      } else {
        has_others = true;
      }
    }
    if (!field.ok() || !fits || (values.empty() && has_others))
      return std::nullopt;
    return values;
  }

  static void Append(std::string& to, const std::vector<T>& values) {
    graph_internal::AppendNested(to, graph_internal::kAttrList, [&] {
      if constexpr (kType == internal::kBytesType) {
        for (const T& value : values) {
          graph_internal::AppendNested(to, Traits::kListField,
                                       [&] { Traits::Append(to, value); });
        }
      } else if (!values.empty()) {
        graph_internal::AppendNested(to, Traits::kListField,
                                     [&] { AppendPacked(to, values); });
      }
    });
  }
  static std::string Encode(const std::vector<T>& values) {
    std::string attr_value;
    Append(attr_value, values);
    return attr_value;
  }

 private:
  static void AppendPacked(std::string& to, const std::vector<T>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if constexpr (kType == internal::kVarintType) {
        internal::AppendVarint(to, Traits::Encode(values[i]));
      } else {
        Traits::Append(to, values[i]);
      }
    }
  }
  template <class F>
  static bool Unpack(absl::string_view bytes, const F& add) {
    const char* p = bytes.data();
    const char* const end = p + bytes.size();
    while (p < end) {
      if constexpr (kType == internal::kVarintType) {
        uint64_t value = 0;
        if ((p = internal::ReadVarint(p, end, &value)) == nullptr) return false;
        add(Traits::Decode(value));
      } else {
        if (end - p < 4) return false;
        add(Traits::Decode(absl::string_view(p, 4)));
        p += 4;
      }
    }
    return true;
  }
};

// Return the size of a ListValue of strings in bytes, and write it as an
// AttrValue. Passes set lists of strings, such as fused_ops, in many nodes.
inline size_t ListedSize(const std::vector<std::string>& values) {
  size_t size = 0;
  for (const std::string& value : values)
    size += internal::BytesFieldSize(value.size());
  return size;
}
inline void WriteList(char* to, size_t size,
                      const std::vector<std::string>& values) {
  to = internal::WriteVarint(
      to, internal::MakeTag(graph_internal::kAttrList, internal::kBytesType));
  to = internal::WriteVarint(to, size);
  for (const std::string& value : values) {
    to = internal::WriteField(to, graph_internal::kAttrString, value);
  }
}

// The type to which SetAttr() converts a T: std::string for strings, int64_t
// for integers, float for floating-point numbers, and T for other types.
template <class T>
using AttrTypeFor = std::conditional_t<
    std::is_convertible_v<const T&, absl::string_view>, std::string,
    std::conditional_t<
        std::is_integral_v<T> && !std::is_same_v<T, bool>, int64_t,
        std::conditional_t<std::is_floating_point_v<T>, float, T>>>;

}  // namespace tfplug::graph

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_ATTR_VALUE_H_
