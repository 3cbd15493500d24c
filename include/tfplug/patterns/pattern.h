// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_PATTERN_H_
#define TFPLUG_PATTERNS_PATTERN_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/graph/node.h"
#include "tfplug/kernel/internal/op_attr_types.h"
#include "tfplug/kernel/op.h"
#include "tfplug/patterns/internal/pattern_tree.h"

// What to look for in a graph:
//
//   auto x = Any(), w = Any(), b = Any();
//   auto product = Match<ops::MatMul>(x, w).Where(ops::MatMul::transpose_a,
//   false); auto root = Match<ops::Relu,
//   ops::Relu6>(Match<ops::BiasAdd>(product, b));
//
// and patterns/rule.h says what to put in its place. A pattern is a
// handle: copies stand for the same node, and one used twice matches one node
// twice. Patterns are built once (in a function's static, or in a pass's
// constructor), in one thread; what is said of a handle after a Rule was made
// of it is lost.
namespace tfplug {

template <class... Ops>
class NodePattern;

// One value in a graph (one output of one node), or the node that it is an
// output of: whatever a pattern has at an input.
class Pattern {
 public:
  // A name for explanations, such as "bias".
  Pattern Named(std::string label) const {
    spec()->label = std::move(label);
    return *this;
  }

  // The mechanism's.
  const std::shared_ptr<internal::PatternSpec>& spec() const {
    return output_.spec;
  }
  const internal::PatternOutput& output() const { return output_; }

 protected:
  explicit Pattern(internal::PatternSpec::Kind kind)
      : output_{std::make_shared<internal::PatternSpec>(), 0} {
    spec()->kind = kind;
  }
  Pattern(std::shared_ptr<internal::PatternSpec> spec, int port)
      : output_{std::move(spec), port} {}

 private:
  friend Pattern Any(std::string);
  template <class... Patterns>
  friend Pattern OneOf(const Patterns&...);
  template <class... Ops>
  friend class NodePattern;
  template <class... Ops>
  friend Pattern Optional(const NodePattern<Ops...>&);

  internal::PatternOutput output_;
};

// Any output of any node; used twice in a pattern, twice the same output.
inline Pattern Any(std::string label = "") {
  return Pattern(internal::PatternSpec::Kind::kAny).Named(std::move(label));
}

// A node of one of Ops. As an operand it is its output 0; see operator[].
template <class... Ops>
class NodePattern : public Pattern {
 public:
  // ---- Attributes. A node that lacks the attribute does not match. With
  // several Ops, a typed name is looked at in the nodes of its own op alone, a
  // plain one in all of them.

  // The attribute has this value.
  template <class E, class = internal::IfOpEnum<E>>
  NodePattern Where(E attr, internal::AttrType<E> value) const {
    return Add(attr, {std::move(value)});
  }
  // ... one of these.
  template <class E, class = internal::IfOpEnum<E>>
  NodePattern WhereOneOf(
      E attr, std::initializer_list<internal::AttrType<E>> values) const {
    return Add(attr, values);
  }
  // ... one for which `holds(value)`; `words` say what is wanted, for
  // explanations: "at least 2".
  template <class E, class F, class = internal::IfOpEnum<E>>
  NodePattern WhereHolds(E attr, std::string words, F holds) const {
    return Add<internal::AttrType<E>>(OpOf<E>(), internal::NameOf(attr),
                                      std::move(words), std::move(holds));
  }
  // The same by plain names: bool, int64_t, float, DataType, std::string, or a
  // std::vector of one of them.
  template <class T>
  NodePattern Where(absl::string_view attr, T value) const {
    return AddValues<T>("", attr, {std::move(value)});
  }
  NodePattern Where(absl::string_view attr, int value) const {
    return AddValues<int64_t>("", attr, {value});
  }
  NodePattern Where(absl::string_view attr, const char* value) const {
    return AddValues<std::string>("", attr, {value});
  }
  template <class T>
  NodePattern WhereOneOf(absl::string_view attr,
                         std::initializer_list<T> values) const {
    return AddValues<T>("", attr, values);
  }
  template <class T, class F>
  NodePattern WhereHolds(absl::string_view attr, std::string words,
                         F holds) const {
    return Add<T>("", attr, std::move(words), std::move(holds));
  }

  // ---- The node's place in the graph

  // The first two inputs may stand the other way round.
  NodePattern Commutative() const {
    spec()->is_commutative = true;
    return *this;
  }
  // The node may be used outside the match, be preserved, and be on another
  // device. It then stays; where nothing uses it any more, it goes with the
  // rest. The replacement must not rely on having it for itself.
  NodePattern MayHaveOtherUses() const {
    spec()->may_have_other_uses = true;
    return *this;
  }
  NodePattern Named(std::string label) const {
    spec()->label = std::move(label);
    return *this;
  }

  // Another output than the first.
  template <class E, class = internal::IfOpEnum<E>>
  Pattern operator[](E output) const {
    static_assert((internal::BelongsTo<E, Ops>() || ...),
                  "tfplug: this output belongs to another op than the "
                  "pattern is for");
    return (*this)[internal::OutputIndex(output)];
  }
  Pattern operator[](int output) const { return Pattern(spec(), output); }

 private:
  template <class O, class... Os, class... Patterns>
  friend NodePattern<O, Os...> Match(const Patterns&... inputs);
  template <class... Patterns>
  friend NodePattern<> Match(std::string op, const Patterns&... inputs);

  NodePattern() : Pattern(internal::PatternSpec::Kind::kNode) {}

  // The op that E is of.
  template <class E>
  static std::string OpOf() {
    static_assert((internal::BelongsTo<E, Ops>() || ...),
                  "tfplug: this attribute belongs to another op than the "
                  "pattern is for");
    std::string op;
    if constexpr (sizeof...(Ops) > 1) {
      ((op = internal::BelongsTo<E, Ops>() ? Ops::kName : op), ...);
    }
    return op;
  }
  template <class E>
  NodePattern Add(E attr,
                  std::initializer_list<internal::AttrType<E>> values) const {
    return AddValues<internal::AttrType<E>>(OpOf<E>(), internal::NameOf(attr),
                                            values);
  }
  template <class T>
  NodePattern AddValues(std::string op, absl::string_view attr,
                        std::vector<T> values) const {
    std::string words = values.size() > 1 ? "one of " : "";
    for (size_t i = 0; i < values.size(); ++i) {
      words += (i == 0 ? "" : ", ") + internal::ToWords(values[i]);
    }
    return Add<T>(std::move(op), attr, std::move(words),
                  [values = std::move(values)](const T& value) {
                    return std::find(values.begin(), values.end(), value) !=
                           values.end();
                  });
  }
  template <class T, class F>
  NodePattern Add(std::string op, absl::string_view attr, std::string words,
                  F holds) const {
    auto condition = [name = std::string(attr),
                      holds = std::move(holds)](const Node& node) {
      const auto value = internal::AttrCodec<T>::Decode(node.RawAttr(name));
      return value.has_value() && holds(*value);
    };
    spec()->conditions.push_back({std::move(op), std::string(attr),
                                  std::move(words), std::move(condition)});
    return *this;
  }
};

// A node of one of Ops with these inputs. How many an op takes is checked when
// this is compiled; the elements of a list are inputs of their own. Without any
// inputs given, they are not looked at.
template <class O, class... Ops, class... Patterns>
NodePattern<O, Ops...> Match(const Patterns&... inputs) {
  static_assert(internal::kIsTypedOp<O> && (internal::kIsTypedOp<Ops> && ...),
                "tfplug: Match takes typed ops, such as ops::MatMul, or the "
                "name of one");
  static_assert((std::is_base_of_v<Pattern, Patterns> && ...),
                "tfplug: the inputs of a pattern are patterns, such as Any()");
  static_assert(sizeof...(Patterns) == 0 ||
                    (internal::TakesInputs<O>(sizeof...(Patterns)) && ... &&
                     internal::TakesInputs<Ops>(sizeof...(Patterns))),
                "tfplug: this is not the number of inputs that the op takes");
  NodePattern<O, Ops...> pattern;
  pattern.spec()->ops = {O::kName, Ops::kName...};
  pattern.spec()->inputs = {inputs.output()...};
  pattern.spec()->has_inputs = sizeof...(Patterns) > 0;
  pattern.spec()->has_many_outputs =
      internal::HasManyOutputs<O>() || (internal::HasManyOutputs<Ops>() || ...);
  return pattern;
}

// The same for an op by its name: one of your own, or newer than the headers.
template <class... Patterns>
NodePattern<> Match(std::string op, const Patterns&... inputs) {
  static_assert((std::is_base_of_v<Pattern, Patterns> && ...),
                "tfplug: the inputs of a pattern are patterns, such as Any()");
  NodePattern<> pattern;
  pattern.spec()->ops = {std::move(op)};
  pattern.spec()->inputs = {inputs.output()...};
  pattern.spec()->has_inputs = sizeof...(Patterns) > 0;
  pattern.spec()->has_many_outputs = true;
  return pattern;
}

// Whichever of the patterns matches first, in this order.
template <class... Patterns>
Pattern OneOf(const Patterns&... patterns) {
  static_assert((std::is_base_of_v<Pattern, Patterns> && ...),
                "tfplug: OneOf takes patterns");
  Pattern pattern(internal::PatternSpec::Kind::kOneOf);
  pattern.spec()->inputs = {patterns.output()...};
  return pattern;
}

// The node, or, where there is none such, what would be its first input:
// Optional(Match<ops::BiasAdd>(x, b)) also matches a plain x. Found with the
// node rather than without it.
template <class... Ops>
Pattern Optional(const NodePattern<Ops...>& node) {
  Pattern pattern(internal::PatternSpec::Kind::kOptional);
  pattern.spec()->inputs = {node.output()};
  return pattern;
}

}  // namespace tfplug

#endif  // TFPLUG_PATTERNS_PATTERN_H_
