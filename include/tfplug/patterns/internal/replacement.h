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
#include "tfplug/base/data_type.h"
#include "tfplug/base/shape.h"
#include "tfplug/graph/attr_value.h"
#include "tfplug/graph/constant.h"
#include "tfplug/patterns/internal/element.h"
#include "tfplug/patterns/matched.h"

#pragma GCC visibility push(hidden)

// The data behind patterns/rule.h: rules, and their replacements as trees.
namespace tfplug::internal {

using patterns::Matched;

// The value of an attribute of a new node.
using AttrValue =
    std::variant<bool, int64_t, float, DataType, std::string, PartialShape,
                 std::vector<bool>, std::vector<int64_t>, std::vector<float>,
                 std::vector<DataType>, std::vector<std::string>>;

// An attribute of a new node. Its value comes from the first of `copy_from`,
// `function` and `value` that is set.
struct NewAttr {
  std::string name;
  bool if_known = false;  // Skipped if the op has no such attribute.
  bool is_type = false;   // A DataType, by which kernels are selected.
  std::shared_ptr<PatternElement> copy_from;
  std::function<AttrValue(const Matched&)> function;
  AttrValue value;
  std::string bytes;  // `value`, serialized.
};

struct ReplacementTree {
  enum class Kind { kMatched, kNode, kConst };
  Kind kind = Kind::kMatched;
  PatternOutput matched;  // For kMatched.
  std::string op;         // For kNode.
  std::vector<std::shared_ptr<ReplacementTree>> inputs;
  std::vector<NewAttr> attrs;
  bool needs_kernel = false;
  // For kConst.
  std::function<absl::StatusOr<Constant>(const Matched&)> value;
};

struct RuleData {
  struct Condition {
    std::string description;
    std::function<bool(const Matched&)> predicate;
  };
  std::string name;
  PatternOutput root;
  int priority = 0;
  std::vector<Condition> conditions;
  std::shared_ptr<ReplacementTree> replacement;
};

// Whether a V can be the value of an attribute of type T. Excludes the
// conversions of pointers to bool and of bool to numbers.
template <class V, class T>
constexpr bool IsAttrValue() {
  if constexpr (std::is_arithmetic_v<T>) {
    return std::is_arithmetic_v<V> &&
           std::is_same_v<V, bool> == std::is_same_v<T, bool>;
  } else {
    return std::is_convertible_v<V, T>;
  }
}

// Sets the value of an attribute of type T: a T, or a function of the match.
template <class T, class V>
void Assign(V value, NewAttr& attr) {
  attr.is_type = std::is_same_v<T, DataType>;
  if constexpr (std::is_invocable_v<V, const Matched&>) {
    static_assert(
        IsAttrValue<std::invoke_result_t<V, const Matched&>, T>(),
        "tfplug: the function does not return the type of the attribute");
    attr.function = [value = std::move(value)](const Matched& matched) {
      return AttrValue(std::in_place_type<T>, static_cast<T>(value(matched)));
    };
  } else {
    static_assert(IsAttrValue<V, T>(),
                  "tfplug: the value does not have the type of the attribute");
    attr.value.emplace<T>(static_cast<T>(std::move(value)));
    attr.bytes.clear();
    AttrCodec<T>::Append(attr.bytes, std::get<T>(attr.value));
  }
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_REPLACEMENT_H_
