// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_REPLACEMENT_H_
#define TFPLUG_PATTERNS_INTERNAL_REPLACEMENT_H_

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tfplug/graph/attr_value.h"
#include "tfplug/graph/constant.h"
#include "tfplug/patterns/internal/element.h"
#include "tfplug/patterns/matched.h"

#pragma GCC visibility push(hidden)

// The data behind patterns/rule.h: rules, and their replacements as trees.
namespace tfplug::patterns_internal {

using patterns::Matched;

// An attribute of a new node. Its value comes from the first of `copy_from`,
// `function` and `value` that is set.
struct NewAttr {
  std::string name;
  bool if_known = false;  // Skipped if the op has no such attribute.
  std::shared_ptr<PatternElement> copy_from;
  std::string copy_name;  // Of the attribute of copy_from; empty: `name`.
  // Returns a serialized AttrValue.
  std::function<std::string(const Matched&)> function;
  std::string value;  // A serialized AttrValue.
};

struct ReplacementTree;

// A value in a replacement: an output of a new node, or a matched value.
struct ReplacementSource {
  std::shared_ptr<ReplacementTree> tree;
  int port = 0;  // For kNode.
};

struct ReplacementTree {
  enum class Kind { kMatched, kNode, kConst };
  Kind kind = Kind::kMatched;
  PatternOutput matched;  // For kMatched.
  std::string op;         // For kNode.
  std::vector<ReplacementSource> inputs;
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
  ReplacementSource replacement;  // Of the root.
  // The outputs that are replaced besides the root, and their replacements.
  std::vector<PatternOutput> results;
  std::vector<ReplacementSource> result_replacements;
};

// The type of an attribute that has the value V: the result of a function of
// the match, or the type that Node::SetAttr() would store.
template <class V, class = void>
struct NewAttrType {
  using Type = graph::AttrTypeFor<V>;
};
template <class V>
struct NewAttrType<V, std::enable_if_t<std::is_invocable_v<V, const Matched&>>>
    : NewAttrType<std::decay_t<std::invoke_result_t<V, const Matched&>>> {};

// Sets the value of an attribute of type T: a T, or a function of the match.
template <class T, class V>
void Assign(V value, NewAttr& attr) {
  if constexpr (std::is_invocable_v<V, const Matched&>) {
    static_assert(
        IsAttrValue<std::invoke_result_t<V, const Matched&>, T>(),
        "tfplug: the function does not return the type of the attribute");
    attr.function = [value = std::move(value)](const Matched& matched) {
      return graph::AttrCodec<T>::Encode(static_cast<T>(value(matched)));
    };
  } else {
    static_assert(IsAttrValue<V, T>(),
                  "tfplug: the value does not have the type of the attribute");
    attr.value = graph::AttrCodec<T>::Encode(static_cast<T>(std::move(value)));
  }
}

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_REPLACEMENT_H_
