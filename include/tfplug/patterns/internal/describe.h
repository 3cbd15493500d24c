// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_DESCRIBE_H_
#define TFPLUG_PATTERNS_INTERNAL_DESCRIBE_H_

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/graph/attr_value.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/internal/attr_codec.h"
#include "tfplug/graph/node.h"
#include "tfplug/patterns/internal/const_value.h"
#include "tfplug/patterns/internal/element.h"

#pragma GCC visibility push(hidden)

// Texts for explanations of why a rule does not apply.
namespace tfplug::patterns_internal {

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

inline std::string DescribeNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

// Returns the value of an attribute of any type as text. `bytes` is a
// serialized AttrValue; null data if the node lacks the attribute.
inline std::string DescribeAttr(absl::string_view bytes) {
  if (bytes.data() == nullptr) return "absent";
  if (auto v = graph::AttrCodec<bool>::Decode(bytes)) return Describe(*v);
  if (auto v = graph::AttrCodec<int64_t>::Decode(bytes)) return Describe(*v);
  if (auto v = graph::AttrCodec<float>::Decode(bytes)) return Describe(*v);
  if (auto v = graph::AttrCodec<DataType>::Decode(bytes)) return Describe(*v);
  if (auto v = graph::AttrCodec<std::string>::Decode(bytes))
    return Describe(*v);
  if (auto v = graph::AttrCodec<std::vector<int64_t>>::Decode(bytes)) {
    return Describe(*v);
  }
  const graph_internal::ParsedAttrValue value(bytes);
  if (value.field() != graph_internal::kAttrTensor) return "of another type";
  const absl::StatusOr<Constant> constant = Constant::Parse(value.bytes());
  if (!constant.ok()) return "a tensor without numbers";
  if (constant->num_elements() <= 8 && constant->shape().rank() <= 1) {
    if (auto integers = constant->GetIntegers(); integers.ok()) {
      return Describe(*integers);
    }
  }
  const std::string tensor = std::string("a tensor of type ") +
                             DataTypeName(constant->dtype()) + " and shape " +
                             constant->shape().ToString();
  const std::optional<double> splat = SplatOf(*constant);
  if (!splat.has_value()) return tensor;
  return constant->shape().rank() == 0
             ? DescribeNumber(*splat)
             : tensor + ", all " + DescribeNumber(*splat);
}

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_DESCRIBE_H_
