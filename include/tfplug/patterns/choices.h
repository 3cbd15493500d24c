// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_CHOICES_H_
#define TFPLUG_PATTERNS_CHOICES_H_

#include <string>
#include <type_traits>
#include <utility>

#include "tfplug/patterns/conditions.h"
#include "tfplug/patterns/internal/element.h"
#include "tfplug/patterns/pattern.h"

#pragma GCC visibility push(hidden)

// Patterns with alternatives.
namespace tfplug::patterns {

// OneOf or Optional. A condition applies to the alternative that matched, if it
// is a node; where an Optional node is absent, the condition is met.
template <class... Ops>
class ChoicePattern : public Pattern,
                      public Conditions<ChoicePattern<Ops...>, Ops...> {
 public:
  ChoicePattern Named(std::string label) const {
    element().label = std::move(label);
    return *this;
  }

 private:
  friend Conditions<ChoicePattern, Ops...>;
  friend struct internal::Access;

  template <class... Patterns>
  explicit ChoicePattern(Kind kind, const Patterns&... alternatives)
      : Pattern(kind) {
    element().inputs = {internal::Access::output(alternatives)...};
  }
  ChoicePattern AddCondition(patterns_internal::AttrCondition condition) const {
    element().conditions.push_back(std::move(condition));
    return *this;
  }
};

}  // namespace tfplug::patterns

namespace tfplug::patterns_internal {

// The ChoicePattern of all ops that the patterns can match.
template <class... Patterns>
struct ChoiceOf;
template <class... Ops>
struct ChoiceOf<patterns::ChoicePattern<Ops...>> {
  using Type = patterns::ChoicePattern<Ops...>;
};
template <class... Found, class... Ops, class... Rest>
struct ChoiceOf<patterns::ChoicePattern<Found...>,
                patterns::NodePattern<Ops...>, Rest...>
    : ChoiceOf<patterns::ChoicePattern<Found..., Ops...>, Rest...> {};
template <class... Found, class... Ops, class... Rest>
struct ChoiceOf<patterns::ChoicePattern<Found...>,
                patterns::ChoicePattern<Ops...>, Rest...>
    : ChoiceOf<patterns::ChoicePattern<Found..., Ops...>, Rest...> {};
template <class... Found, class Other, class... Rest>
struct ChoiceOf<patterns::ChoicePattern<Found...>, Other, Rest...>
    : ChoiceOf<patterns::ChoicePattern<Found...>, Rest...> {};

}  // namespace tfplug::patterns_internal

namespace tfplug::patterns {

// Tries the patterns in this order; the first one that matches is used.
template <class... Patterns>
auto OneOf(const Patterns&... patterns) {
  static_assert((std::is_base_of_v<Pattern, Patterns> && ...),
                "tfplug: OneOf takes patterns");
  using Choice =
      typename patterns_internal::ChoiceOf<ChoicePattern<>, Patterns...>::Type;
  return internal::Access::Construct<Choice>(
      patterns_internal::PatternElement::Kind::kOneOf, patterns...);
}

// Matches the node or, if there is no such node, its first input instead:
// Optional(Match<ops::BiasAdd>(x, b)) also matches a plain x. A match with the
// node is preferred.
template <class... Ops>
ChoicePattern<Ops...> Optional(const NodePattern<Ops...>& node) {
  return internal::Access::Construct<ChoicePattern<Ops...>>(
      patterns_internal::PatternElement::Kind::kOptional, node);
}

// Matches any number of nodes in a row, including none: a chain of nodes that
// all match `node`, each of which is the first input of the one before.
// Repeated(Match<ops::Identity>(x)) matches x, Identity(x),
// Identity(Identity(x)) and so on. The longest chain is taken. As a value, it
// stands for x. Matched::all(node) returns the nodes, the last one first.
template <class... Ops>
Pattern Repeated(const NodePattern<Ops...>& node) {
  Pattern pattern(patterns_internal::PatternElement::Kind::kRepeated);
  pattern.element().inputs = {internal::Access::output(node)};
  return pattern;
}

}  // namespace tfplug::patterns

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_CHOICES_H_
