// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_ATTR_TEXT_H_
#define TFPLUG_TESTING_INTERNAL_ATTR_TEXT_H_

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/attr_value.h"
#include "tfplug/testing/node.h"

#pragma GCC visibility push(hidden)

// The text of attributes in testing/graph_text.h.
namespace tfplug::testing {

// Returns the value of a serialized tensorflow.AttrValue, or nullopt for one
// that has no text, such as a tensor.
template <class... T>
std::optional<AttrValue> DecodeAttrAs(absl::string_view bytes) {
  std::optional<AttrValue> value;
  const auto try_type = [&](auto decoded) {
    if (decoded.has_value()) value = *decoded;
    return decoded.has_value();
  };
  (try_type(graph::AttrCodec<T>::Decode(bytes)) || ...);
  return value;
}
inline std::optional<AttrValue> DecodeAttr(absl::string_view bytes) {
  return DecodeAttrAs<bool, int64_t, float, DataType, std::string, PartialShape,
                      Function, std::vector<bool>, std::vector<int64_t>,
                      std::vector<float>, std::vector<DataType>,
                      std::vector<std::string>, std::vector<PartialShape>,
                      std::vector<Function>>(bytes);
}

// Returns the shortest text of a float, which is not that of an integer.
inline std::string FloatText(double value, bool is_double = false) {
  char text[40];
  for (int digits = 6; digits <= 17; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    const double read = std::strtod(text, nullptr);
    const bool is_exact =
        is_double ? read == value
                  : static_cast<float>(read) == static_cast<float>(value);
    if (is_exact) break;
  }
  const bool has_mark =
      absl::string_view(text).find_first_of(".enai") != absl::string_view::npos;
  return has_mark ? text : absl::StrCat(text, ".0");
}

template <class T>
std::string TextOfAttr(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return absl::StrCat(value);
  } else if constexpr (std::is_same_v<T, float>) {
    return FloatText(value);
  } else if constexpr (std::is_same_v<T, DataType>) {
    return DataTypeName(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return absl::StrCat("\"", absl::CEscape(value), "\"");
  } else if constexpr (std::is_same_v<T, PartialShape>) {
    return value.has_rank() ? "shape" + value.ToString() : "shape[*]";
  } else if constexpr (std::is_same_v<T, Function>) {
    return "@" + value.name;
  } else if constexpr (std::is_same_v<T, TF_Tensor> ||
                       std::is_same_v<T, std::vector<TF_Tensor>>) {
    return "a tensor";
  } else {
    std::string text;
    for (const auto& element : value) {
      absl::StrAppend(&text, text.empty() ? "" : ", ",
                      TextOfAttr<typename T::value_type>(element));
    }
    return absl::StrCat("[", text, "]");
  }
}

// Returns the text of a serialized tensorflow.AttrValue.
inline std::string AttrText(absl::string_view bytes) {
  const std::optional<AttrValue> value = DecodeAttr(bytes);
  if (!value.has_value()) return absl::StrCat("<", bytes.size(), " bytes>");
  return std::visit([](const auto& v) { return TextOfAttr(v); }, *value);
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_ATTR_TEXT_H_
