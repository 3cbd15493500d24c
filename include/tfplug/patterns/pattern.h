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
#include "tfplug/base/internal/access.h"
#include "tfplug/graph/node.h"
#include "tfplug/kernel/internal/op_attr_types.h"
#include "tfplug/patterns/internal/describe.h"
#include "tfplug/patterns/internal/element.h"
#include "tfplug/patterns/internal/typed_op.h"

#pragma GCC visibility push(hidden)

// Patterns describe a part of a graph:
//
//   auto x = Any(), w = Any(), b = Any();
//   auto product =
//       Match<ops::MatMul>(x, w).Where(ops::MatMul::transpose_a, false);
//   auto bias = Match<ops::BiasAdd>(product, b);
//   auto root = Match<ops::Relu, ops::Relu6>(bias);
//
// The rules of patterns/rule.h replace such parts. A pattern is a handle:
// copies refer to the same node, and a handle that is used twice matches one
// node with two uses. Build patterns once, in one thread, for example in the
// initializer of a static variable. Conditions that are added to a handle after
// a Rules object was built from it have no effect.
namespace tfplug::patterns {

template <class... Ops>
class NodePattern;

// Matches one value in a graph (an output of a node), or the node that computes
// it.
class Pattern {
 public:
  // Sets a name for explanations, such as "bias".
  Pattern Named(std::string label) const {
    element().label = std::move(label);
    return *this;
  }

 protected:
  using Kind = internal::PatternElement::Kind;

  explicit Pattern(Kind kind)
      : output_{std::make_shared<internal::PatternElement>(), 0} {
    element().kind = kind;
  }
  explicit Pattern(internal::PatternOutput output)
      : output_(std::move(output)) {}

  internal::PatternElement& element() const { return *output_.element; }

 private:
  friend struct internal::Access;
  friend Pattern Any(std::string);
  template <class... Patterns>
  friend Pattern OneOf(const Patterns&...);
  template <class... Ops>
  friend Pattern Optional(const NodePattern<Ops...>&);
  template <class... Ops>
  friend class NodePattern;

  internal::PatternOutput output_;
};

// Matches any output of any node. A handle that is used twice in a pattern
// matches the same output twice.
inline Pattern Any(std::string label = "") {
  return Pattern(internal::PatternElement::Kind::kAny).Named(std::move(label));
}

// Matches a node of one of Ops. As an operand, it stands for the node's output
// 0; for other outputs, see operator[].
template <class... Ops>
class NodePattern : public Pattern {
 public:
  // ---- Attributes. A node that lacks the attribute does not match. With
  // several Ops, a condition on a typed name applies to nodes of that op only;
  // a condition on a plain name applies to all.

  // Requires `attr` to be `value`.
  template <class E, class = internal::IfOpEnum<E>>
  NodePattern Where(E attr, internal::AttrType<E> value) const {
    return AddValues<internal::AttrType<E>>(OpOf<E>(), internal::NameOf(attr),
                                            {std::move(value)});
  }
  // Requires `attr` to be one of `values`.
  template <class E, class = internal::IfOpEnum<E>>
  NodePattern WhereOneOf(
      E attr, std::initializer_list<internal::AttrType<E>> values) const {
    return AddValues<internal::AttrType<E>>(OpOf<E>(), internal::NameOf(attr),
                                            values);
  }
  // Requires predicate(value) to be true. `description`, such as "at least 2",
  // completes the explanation "attribute N is 1, not ...".
  template <class E, class F, class = internal::IfOpEnum<E>>
  NodePattern WhereSatisfies(E attr, std::string description,
                             F predicate) const {
    return Add<internal::AttrType<E>>(OpOf<E>(), internal::NameOf(attr),
                                      std::move(description),
                                      std::move(predicate));
  }
  // Like Where above, with the name of the attribute as a string. T is bool,
  // int64_t, float, DataType, std::string, or a std::vector of one of these.
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
  NodePattern WhereSatisfies(absl::string_view attr, std::string description,
                             F predicate) const {
    return Add<T>("", attr, std::move(description), std::move(predicate));
  }

  // ---- The node's place in the graph

  // Lets the first two inputs match in either order.
  NodePattern Commutative() const {
    element().is_commutative = true;
    return *this;
  }
  // Permits the node to have uses outside the match, to be preserved, and to be
  // on another device. The node is kept if it has other uses or must be
  // preserved, and is removed otherwise.
  NodePattern MayHaveOtherUses() const {
    element().may_have_other_uses = true;
    return *this;
  }
  NodePattern Named(std::string label) const {
    element().label = std::move(label);
    return *this;
  }

  // Returns the pattern of an output by its typed name, such as
  // ops::FusedBatchNormV3::batch_mean.
  template <class E, class = internal::IfOpEnum<E>>
  Pattern operator[](E output) const {
    static_assert((internal::BelongsTo<E, Ops>() || ...),
                  "tfplug: this output does not belong to an op of the "
                  "pattern");
    return (*this)[internal::OutputIndex(output)];
  }
  Pattern operator[](int output) const {
    return Pattern(internal::PatternOutput{output_.element, output});
  }

 private:
  template <class O, class... Os, class... Patterns>
  friend NodePattern<O, Os...> Match(const Patterns&... inputs);
  template <class... Patterns>
  friend NodePattern<> Match(std::string op, const Patterns&... inputs);

  template <class... Patterns>
  NodePattern(std::vector<std::string> ops, bool has_many_outputs,
              const Patterns&... inputs)
      : Pattern(Kind::kNode) {
    static_assert((std::is_base_of_v<Pattern, Patterns> && ...),
                  "tfplug: the inputs of a pattern must be patterns, such as "
                  "Any()");
    element().ops = std::move(ops);
    element().has_inputs = sizeof...(Patterns) > 0;
    element().inputs = {inputs.output_...};
    element().has_many_outputs = has_many_outputs;
  }

  // Returns the op to which E belongs if there are several Ops.
  template <class E>
  static std::string OpOf() {
    static_assert((internal::BelongsTo<E, Ops>() || ...),
                  "tfplug: this attribute does not belong to an op of the "
                  "pattern");
    std::string op;
    if constexpr (sizeof...(Ops) > 1) {
      ((op = internal::BelongsTo<E, Ops>() ? Ops::kName : op), ...);
    }
    return op;
  }
  template <class T>
  NodePattern AddValues(std::string op, absl::string_view attr,
                        std::vector<T> values) const {
    std::string description = values.size() > 1 ? "one of " : "";
    for (size_t i = 0; i < values.size(); ++i) {
      description += (i == 0 ? "" : ", ") + internal::Describe(values[i]);
    }
    return Add<T>(std::move(op), attr, std::move(description),
                  [values = std::move(values)](const T& value) {
                    return std::find(values.begin(), values.end(), value) !=
                           values.end();
                  });
  }
  template <class T, class F>
  NodePattern Add(std::string op, absl::string_view attr,
                  std::string description, F predicate) const {
    auto check = [name = std::string(attr),
                  predicate = std::move(predicate)](const Node& node) {
      const auto value = internal::AttrCodec<T>::Decode(node.RawAttr(name));
      return value.has_value() && predicate(*value);
    };
    element().conditions.push_back({std::move(op), std::string(attr),
                                    std::move(description), std::move(check)});
    return *this;
  }
};

// Matches a node of one of the ops with these inputs. The compiler checks the
// number of inputs; each element of a list is a separate input. Without
// arguments, any inputs match.
template <class O, class... Ops, class... Patterns>
NodePattern<O, Ops...> Match(const Patterns&... inputs) {
  static_assert(internal::kIsTypedOp<O> && (internal::kIsTypedOp<Ops> && ...),
                "tfplug: Match takes typed ops, such as ops::MatMul, or the "
                "name of one op");
  static_assert(sizeof...(Patterns) == 0 ||
                    (internal::TakesInputs<O>(sizeof...(Patterns)) && ... &&
                     internal::TakesInputs<Ops>(sizeof...(Patterns))),
                "tfplug: wrong number of inputs for this op");
  return NodePattern<O, Ops...>(
      {O::kName, Ops::kName...},
      internal::HasManyOutputs<O>() || (internal::HasManyOutputs<Ops>() || ...),
      inputs...);
}

// Like Match above, with the name of the op as a string, for your own ops and
// for ops that are newer than the headers.
template <class... Patterns>
NodePattern<> Match(std::string op, const Patterns&... inputs) {
  return NodePattern<>({std::move(op)}, /*has_many_outputs=*/true, inputs...);
}

// Tries the patterns in this order; the first one that matches is used.
template <class... Patterns>
Pattern OneOf(const Patterns&... patterns) {
  static_assert((std::is_base_of_v<Pattern, Patterns> && ...),
                "tfplug: OneOf takes patterns");
  Pattern pattern(internal::PatternElement::Kind::kOneOf);
  pattern.element().inputs = {patterns.output_...};
  return pattern;
}

// Matches the node or, if there is no such node, its first input instead:
// Optional(Match<ops::BiasAdd>(x, b)) also matches a plain x. A match with the
// node is preferred.
template <class... Ops>
Pattern Optional(const NodePattern<Ops...>& node) {
  Pattern pattern(internal::PatternElement::Kind::kOptional);
  pattern.element().inputs = {node.output_};
  return pattern;
}

}  // namespace tfplug::patterns

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_PATTERN_H_
