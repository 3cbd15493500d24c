// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_PATTERN_TREE_H_
#define TFPLUG_PATTERNS_INTERNAL_PATTERN_TREE_H_

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/graph/node.h"
#include "tfplug/kernel/internal/op_enums.h"
#include "tfplug/kernel/op.h"

// What patterns/pattern.h's handles stand for: a tree (a DAG, where a handle is
// used twice) of what to look for.
namespace tfplug::internal {

struct PatternSpec;

// An output of what matches `spec`.
struct PatternOutput {
  std::shared_ptr<PatternSpec> spec;
  int port = 0;
};

// One condition on one attribute.
struct AttrCondition {
  std::string op;     // Only for nodes of this op; empty: for all.
  std::string attr;   // The attribute's name.
  std::string words;  // What is wanted of it: "true", "one of 1, 2".
  std::function<bool(const Node&)> holds;
};

struct PatternSpec {
  enum class Kind {
    kAny,       // Any output of any node.
    kNode,      // A node of one of `ops`, with `inputs`.
    kOneOf,     // One of `inputs`, tried in that order.
    kOptional,  // inputs[0], or else what that has as its first input.
  };
  Kind kind = Kind::kAny;
  std::string label;             // For explanations; may be empty.
  std::vector<std::string> ops;  // Of a kNode.
  std::vector<PatternOutput> inputs;
  bool has_inputs = false;      // Of a kNode; false: they are not looked at.
  bool is_commutative = false;  // The first two inputs may be the other way.
  bool may_have_other_uses = false;
  bool has_many_outputs = false;  // Whether any of `ops` has more than one.
  std::vector<AttrCondition> conditions;
};

// ---- Typed ops, as patterns and replacements look at them -------------------

// How many enumerators O's enumeration of a kind has: the typed ops have no
// list of them, so the compiler is asked for each number.
template <class E>
constexpr int CountOf() {
  int count = 0;
  for (const char* name : kNames<E>) count += name != nullptr ? 1 : 0;
  return count;
}

template <class O, class = void>
struct InputCount {
  static constexpr int kValue = 0;
};
template <class O>
struct InputCount<O, std::void_t<typename O::Inputs>> {
  static constexpr int kValue = CountOf<typename O::Inputs>();
};
template <class O, class = void>
inline constexpr bool kHasInputLists = false;
template <class O>
inline constexpr bool kHasInputLists<O, std::void_t<typename O::InputLists>> =
    true;
template <class O, class = void>
inline constexpr bool kHasRefInputs = false;
template <class O>
inline constexpr bool kHasRefInputs<O, std::void_t<typename O::RefInputs>> =
    true;
template <class O, class = void>
inline constexpr bool kHasOutputLists = false;
template <class O>
inline constexpr bool kHasOutputLists<O, std::void_t<typename O::OutputLists>> =
    true;
template <class O, class = void>
struct OutputCount {
  static constexpr int kValue = 0;
};
template <class O>
struct OutputCount<O, std::void_t<typename O::Outputs>> {
  static constexpr int kValue = CountOf<typename O::Outputs>();
};

template <class O>
constexpr bool HasManyOutputs() {
  return OutputCount<O>::kValue > 1 || kHasOutputLists<O>;
}

// Whether `count` values can be the inputs of O.
template <class O>
constexpr bool TakesInputs(int count) {
  constexpr int kFixed = InputCount<O>::kValue;
  return kHasInputLists<O> || kHasRefInputs<O> ? count >= kFixed
                                               : count == kFixed;
}

// Whether E, an enumeration of a typed op, is one of O's, an ops::X.
template <class E, class O>
struct IsEnumOf;
template <class E, class Names>
struct IsEnumOf<E, Op<Names>> {
  static constexpr bool kValue =
      ScopeOf(SpellingOf<E>()) == SpellingOf<Names>();
};
template <class E, class O>
constexpr bool BelongsTo() {
  return IsEnumOf<E, O>::kValue;
}

template <class T>
inline constexpr bool kIsTypedOp = false;
template <class Names>
inline constexpr bool kIsTypedOp<Op<Names>> = true;

// ---- Values in words --------------------------------------------------------

inline std::string ToWords(bool value) { return value ? "true" : "false"; }
inline std::string ToWords(int64_t value) { return std::to_string(value); }
inline std::string ToWords(float value) { return std::to_string(value); }
inline std::string ToWords(DataType value) { return DataTypeName(value); }
inline std::string ToWords(const std::string& value) {
  return "\"" + value + "\"";
}
template <class T>
std::string ToWords(const std::vector<T>& values) {
  std::string words = "[";
  for (const T value : values) {
    words += (words.size() > 1 ? ", " : "") + ToWords(value);
  }
  return words + "]";
}

}  // namespace tfplug::internal

#endif  // TFPLUG_PATTERNS_INTERNAL_PATTERN_TREE_H_
