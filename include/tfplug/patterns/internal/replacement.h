// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_REPLACEMENT_H_
#define TFPLUG_PATTERNS_INTERNAL_REPLACEMENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/shape.h"
#include "tfplug/graph/attr_value.h"
#include "tfplug/graph/constant.h"
#include "tfplug/patterns/internal/pattern_tree.h"
#include "tfplug/patterns/matched.h"

// What patterns/rule.h's New(...) builds: the new nodes, as a tree.
namespace tfplug::internal {

// The value of an attribute, before there is a node to set it on.
using AttrValue =
    std::variant<bool, int64_t, float, DataType, std::string, PartialShape,
                 std::vector<bool>, std::vector<int64_t>, std::vector<float>,
                 std::vector<DataType>, std::vector<std::string>>;

// Where an attribute of a new node comes from: `copy_from`, `function` or
// `value`, the first of them that is there.
struct NewAttr {
  std::string name;
  bool if_known = false;  // Left out where the op has no such attribute.
  bool is_type = false;   // A DataType, by which kernels are chosen.
  std::shared_ptr<PatternSpec> copy_from;
  std::function<AttrValue(const Matched&)> function;
  AttrValue value;
  std::string bytes;  // `value`, serialised.
};

struct ReplacementTree {
  enum class Kind { kMatched, kNode, kConst };
  Kind kind = Kind::kMatched;
  PatternOutput matched;  // Of a kMatched.
  std::string op;         // Of a kNode.
  std::vector<std::shared_ptr<ReplacementTree>> inputs;
  std::vector<NewAttr> attrs;
  bool needs_kernel = false;
  // Of a kConst.
  std::function<absl::StatusOr<Constant>(const Matched&)> value;
};

// Whether a V is taken for an attribute of type T. A pointer is no bool, and a
// bool no number.
template <class V, class T>
constexpr bool IsAttrValue() {
  if constexpr (std::is_arithmetic_v<T>) {
    return std::is_arithmetic_v<V> &&
           std::is_same_v<V, bool> == std::is_same_v<T, bool>;
  } else {
    return std::is_convertible_v<V, T>;
  }
}

// `value` as T, an attribute's type: T, or a function of the match.
template <class T, class V>
void Assign(V value, NewAttr& attr) {
  attr.is_type = std::is_same_v<T, DataType>;
  if constexpr (std::is_invocable_v<V, const Matched&>) {
    static_assert(
        IsAttrValue<std::invoke_result_t<V, const Matched&>, T>(),
        "tfplug: the attribute is of another type than the function returns");
    attr.function = [value = std::move(value)](const Matched& matched) {
      return AttrValue(std::in_place_type<T>, static_cast<T>(value(matched)));
    };
  } else {
    static_assert(IsAttrValue<V, T>(),
                  "tfplug: the attribute is of another type");
    attr.value.emplace<T>(static_cast<T>(std::move(value)));
    attr.bytes.clear();
    AttrCodec<T>::Append(attr.bytes, std::get<T>(attr.value));
  }
}

}  // namespace tfplug::internal

#endif  // TFPLUG_PATTERNS_INTERNAL_REPLACEMENT_H_
