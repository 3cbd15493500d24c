// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_PATTERN_H_
#define TFPLUG_PATTERNS_PATTERN_H_

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tfplug/base/internal/access.h"
#include "tfplug/patterns/conditions.h"
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
template <class... Ops>
class ChoicePattern;

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
  using Kind = patterns_internal::PatternElement::Kind;

  explicit Pattern(Kind kind)
      : output_{std::make_shared<patterns_internal::PatternElement>(), 0} {
    element().kind = kind;
  }
  explicit Pattern(patterns_internal::PatternOutput output)
      : output_(std::move(output)) {}

  patterns_internal::PatternElement& element() const {
    return *output_.element;
  }

 private:
  friend struct internal::Access;
  friend Pattern Any(std::string);
  friend class EachInput;
  template <class... Ops>
  friend Pattern Repeated(const NodePattern<Ops...>&);
  template <class... Ops>
  friend class NodePattern;

  const patterns_internal::PatternOutput& operand() const { return output_; }

  patterns_internal::PatternOutput output_;
};

// Matches any output of any node. A handle that is used twice in a pattern
// matches the same output twice.
inline Pattern Any(std::string label = "") {
  return Pattern(patterns_internal::PatternElement::Kind::kAny)
      .Named(std::move(label));
}

// The inputs of a list, of which there may be any number: see Each().
class EachInput {
 private:
  friend struct internal::Access;
  friend EachInput Each(const Pattern&);

  explicit EachInput(const Pattern& pattern)
      : element_(std::make_shared<patterns_internal::PatternElement>()),
        output_(pattern.output_) {
    element_->kind = patterns_internal::PatternElement::Kind::kEach;
    element_->inputs = {output_};
  }
  patterns_internal::PatternOutput operand() const { return {element_, 0}; }

  std::shared_ptr<patterns_internal::PatternElement> element_;
  patterns_internal::PatternOutput output_;  // What one input matches.
};

// Matches a node of one of Ops. As an operand, it stands for the node's output
// 0; for other outputs, see operator[].
template <class... Ops>
class NodePattern : public Pattern,
                    public Conditions<NodePattern<Ops...>, Ops...> {
 public:
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
  template <class E, class = kernel_internal::IfOpEnum<E>>
  Pattern operator[](E output) const {
    static_assert((patterns_internal::BelongsTo<E, Ops>() || ...),
                  "tfplug: this output does not belong to an op of the "
                  "pattern");
    return (*this)[kernel_internal::OutputIndex(output)];
  }
  Pattern operator[](int output) const {
    return Pattern(patterns_internal::PatternOutput{output_.element, output});
  }

 private:
  friend Conditions<NodePattern, Ops...>;
  template <class O, class... Os, class... Patterns>
  friend NodePattern<O, Os...> Match(const Patterns&... inputs);
  template <class... Patterns>
  friend NodePattern<> Match(std::string op, const Patterns&... inputs);
  template <class F>
  friend NodePattern<> MatchConst(std::string, F);

  template <class... Patterns>
  NodePattern(std::vector<std::string> ops, bool has_many_outputs,
              const Patterns&... inputs)
      : Pattern(Kind::kNode) {
    static_assert(
        ((std::is_base_of_v<Pattern, Patterns> ||
          std::is_same_v<EachInput, Patterns>)&&...),
        "tfplug: the inputs of a pattern must be patterns, such as Any()");
    static_assert((int{std::is_same_v<EachInput, Patterns>} + ... + 0) <= 1,
                  "tfplug: only one input of a pattern can be an Each(...)");
    element().ops = std::move(ops);
    element().has_inputs = sizeof...(Patterns) > 0;
    element().inputs = {internal::Access::operand(inputs)...};
    element().has_many_outputs = has_many_outputs;
  }

  NodePattern AddCondition(patterns_internal::AttrCondition condition) const {
    element().conditions.push_back(std::move(condition));
    return *this;
  }
};

// Matches a node of one of the ops with these inputs. The compiler checks the
// number of inputs; each element of a list is a separate input, or the whole
// list is an Each(). Without arguments, any inputs match.
template <class O, class... Ops, class... Patterns>
NodePattern<O, Ops...> Match(const Patterns&... inputs) {
  static_assert(patterns_internal::kIsTypedOp<O> &&
                    (patterns_internal::kIsTypedOp<Ops> && ...),
                "tfplug: Match takes typed ops, such as ops::MatMul, or the "
                "name of one op");
  constexpr bool kHasEach = (std::is_same_v<EachInput, Patterns> || ...);
  static_assert(!kHasEach || (patterns_internal::kHasInputLists<O> && ... &&
                              patterns_internal::kHasInputLists<Ops>),
                "tfplug: Each(...) stands for an input that is a list, but "
                "this op has none");
  static_assert(
      sizeof...(Patterns) == 0 || kHasEach ||
          (patterns_internal::TakesInputs<O>(sizeof...(Patterns)) && ... &&
           patterns_internal::TakesInputs<Ops>(sizeof...(Patterns))),
      "tfplug: Match<Op>(...) has more or fewer patterns than the op has "
      "inputs; tfplug/ops/ lists them");
  return NodePattern<O, Ops...>(
      {O::kName, Ops::kName...},
      patterns_internal::HasManyOutputs<O>() ||
          (patterns_internal::HasManyOutputs<Ops>() || ...),
      inputs...);
}

// Does the same as Match above with the name of the op as a string, for your
// own ops and for ops that are newer than the headers.
template <class... Patterns>
NodePattern<> Match(std::string op, const Patterns&... inputs) {
  return NodePattern<>({std::move(op)}, /*has_many_outputs=*/true, inputs...);
}

// Stands for all inputs of a list, each of which must match `pattern`:
//
//   auto x = Any();
//   auto sum = Match<ops::AddN>(Each(Match<ops::Neg>(x)));
//
// In a replacement, `x` and Each(x) stand for all values that x matched:
// New<ops::AddN>(x). Matched::all(x) returns them.
inline EachInput Each(const Pattern& pattern) { return EachInput(pattern); }

}  // namespace tfplug::patterns

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_PATTERN_H_
