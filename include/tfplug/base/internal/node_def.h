// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_NODE_DEF_H_
#define TFPLUG_BASE_INTERNAL_NODE_DEF_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/base/shape.h"

#pragma GCC visibility push(hidden)

// Reads a serialized NodeDef, for attributes of a kernel's node that no C
// function returns, at least in some releases.
namespace tfplug::internal {

// Returns the op of the node, or "" if it has none or the bytes are malformed.
inline absl::string_view NodeDefOp(absl::string_view node_def) {
  for (WireReader node(node_def); node.Next();) {
    if (node.number() == 2) return node.bytes();
  }
  return {};
}

// Returns the serialized AttrValue of the attribute `name`, or nullopt if the
// node lacks it.
inline std::optional<absl::string_view> FindAttr(absl::string_view node_def,
                                                 absl::string_view name) {
  for (WireReader node(node_def); node.Next();) {
    if (node.number() != 5) continue;
    absl::string_view key, value;
    for (WireReader entry(node.bytes()); entry.Next();) {
      (entry.number() == 1 ? key : value) = entry.bytes();
    }
    if (key == name) return value;
  }
  return std::nullopt;
}

// Returns "; it has [T, alpha]": the names of the node's attributes, without those
// that TensorFlow adds.
inline std::string DescribeAttrNames(absl::string_view node_def) {
  std::vector<std::string> names;
  for (WireReader node(node_def); node.Next();) {
    if (node.number() != 5) continue;
    WireReader entry(node.bytes());
    if (entry.Next() && entry.bytes().substr(0, 1) != "_") {
      names.emplace_back(entry.bytes());
    }
  }
  std::sort(names.begin(), names.end());
  return "; it has [" + absl::StrJoin(names, ", ") + "]";
}

// The field numbers of AttrValue and of its ListValue.
inline constexpr int kListField = 1;
inline constexpr int kShapeField = 7;
inline constexpr int kFunctionField = 10;
inline constexpr int kShapeInListField = 7;
inline constexpr int kFunctionInListField = 9;

// Returns the contents of field `number` of an AttrValue, or nullopt if the
// AttrValue is empty or has another field.
inline std::optional<absl::string_view> AttrField(absl::string_view attr_value,
                                                  int number) {
  WireReader value(attr_value);
  if (!value.Next() || value.number() != number) return std::nullopt;
  return value.bytes();
}

// Returns the elements of a list of messages: those in field `number` of the
// ListValue. Returns nullopt if `attr_value` is not a list or has elements of
// another type.
inline std::optional<std::vector<absl::string_view>> AttrListField(
    absl::string_view attr_value, int number) {
  const auto list = AttrField(attr_value, kListField);
  if (!list.has_value()) return std::nullopt;
  std::vector<absl::string_view> elements;
  WireReader reader(*list);
  while (reader.Next()) {
    if (reader.number() != number) return std::nullopt;
    elements.push_back(reader.bytes());
  }
  if (!reader.ok()) return std::nullopt;
  return elements;
}

// Parses a TensorShapeProto. Malformed bytes end the shape early.
inline PartialShape ParseShape(absl::string_view shape_proto) {
  Shape shape;
  bool has_rank = true;
  for (WireReader reader(shape_proto); reader.Next();) {
    if (reader.Is(3, kVarintType)) has_rank = reader.varint() == 0;
    if (!reader.Is(2, kBytesType)) continue;
    int64_t size = 0;
    for (WireReader dim(reader.bytes()); dim.Next();) {
      if (dim.Is(1, kVarintType)) size = static_cast<int64_t>(dim.varint());
    }
    shape.add_dim(size);
  }
  return has_rank ? PartialShape(shape) : PartialShape();
}

// Returns the name of the function in a NameAttrList.
inline absl::string_view FunctionName(absl::string_view name_attr_list) {
  return AttrField(name_attr_list, 1).value_or("");
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_NODE_DEF_H_
