// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_DESCRIBE_H_
#define TFPLUG_PATTERNS_INTERNAL_DESCRIBE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/graph/node.h"
#include "tfplug/patterns/internal/element.h"

#pragma GCC visibility push(hidden)

// Texts for explanations of why a rule does not apply.
namespace tfplug::internal {

inline std::string Describe(bool value) { return value ? "true" : "false"; }
inline std::string Describe(int64_t value) { return std::to_string(value); }
inline std::string Describe(float value) { return std::to_string(value); }
inline std::string Describe(DataType value) { return DataTypeName(value); }
inline std::string Describe(const std::string& value) {
  return "\"" + value + "\"";
}
template <class T>
std::string Describe(const std::vector<T>& values) {
  std::string text = "[";
  for (const T value : values) {
    text += (text.size() > 1 ? ", " : "") + Describe(value);
  }
  return text + "]";
}

// Returns "'name' (Op)".
inline std::string Describe(const Node& node) {
  if (!node) return "missing";
  return "'" + std::string(node.name()) + "' (" + std::string(node.op()) + ")";
}

// Returns "Relu|Elu", or "Relu|Elu (label)".
inline std::string DescribeOps(const PatternElement& element) {
  std::string ops;
  for (const std::string& op : element.ops) {
    ops += (ops.empty() ? "" : "|") + op;
  }
  return element.label.empty() ? ops : ops + " (" + element.label + ")";
}

// Returns the value of an attribute of any type as text.
inline std::string DescribeAttr(const Node& node, absl::string_view attr) {
  if (!node.HasAttr(attr)) return "absent";
  if (auto v = node.GetAttr<bool>(attr); v.ok()) return Describe(*v);
  if (auto v = node.GetAttr<int64_t>(attr); v.ok()) return Describe(*v);
  if (auto v = node.GetAttr<float>(attr); v.ok()) return Describe(*v);
  if (auto v = node.GetAttr<DataType>(attr); v.ok()) return Describe(*v);
  if (auto v = node.GetAttr<std::string>(attr); v.ok()) return Describe(*v);
  if (auto v = node.GetAttr<std::vector<int64_t>>(attr); v.ok()) {
    return Describe(*v);
  }
  return "of another type";
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_DESCRIBE_H_
