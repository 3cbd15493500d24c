// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_RULE_H_
#define TFPLUG_PATTERNS_RULE_H_

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/string_view.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/graph/constant.h"
#include "tfplug/patterns/choices.h"
#include "tfplug/patterns/constants.h"
#include "tfplug/patterns/internal/replacement.h"
#include "tfplug/patterns/matched.h"
#include "tfplug/patterns/pattern.h"

#pragma GCC visibility push(hidden)

// Rules replace the part of a graph that a pattern matches. With the handles of
// the example in patterns/pattern.h:
//
//   using Fused = ops::InternalFusedMatMul;
//   Rule rule =
//       Rule("MatMul + bias + activation", root)
//           .OnlyIf("the bias is a vector", [=](const Matched& m) { ... })
//           .ReplaceBy(New<Fused>(x, w, b)
//                          .Copy(product, Fused::transpose_a)
//                          .Set(Fused::fused_ops, [=](const Matched& m) {
//                            return std::vector<std::string>{
//                                "BiasAdd", std::string(m.node(root).op())};
//                          }));
//
// The new node takes the place of the pattern's outermost node, the root: its
// name, device, uses, and the attributes whose names begin with an underscore.
// The other matched nodes are removed. patterns/rules.h applies rules, and
// lists the conditions under which a match is replaced.
namespace tfplug::patterns {

// A new node, a new constant, or a matched value.
class Replacement {
 public:
  // Replaces the root by a matched value. If the root's name must remain (it is
  // preserved, or has a control edge), the root becomes an Identity.
  Replacement(const Pattern& matched) : Replacement(Kind::kMatched) {
    tree().matched = internal::Access::output(matched);
  }
  // Stands for all values of the list as inputs of a new node.
  Replacement(const EachInput& each) : Replacement(Kind::kMatched) {
    tree().matched = internal::Access::output(each);
  }

 protected:
  using Kind = patterns_internal::ReplacementTree::Kind;

  explicit Replacement(Kind kind)
      : source_{std::make_shared<patterns_internal::ReplacementTree>()} {
    tree().kind = kind;
  }
  explicit Replacement(patterns_internal::ReplacementSource source)
      : source_(std::move(source)) {}
  patterns_internal::ReplacementTree& tree() const { return *source_.tree; }

 private:
  friend struct internal::Access;
  template <class... Op>
  friend class NewNode;
  template <class F>
  friend Replacement NewConst(F value);

  patterns_internal::ReplacementSource source_;
};

// A new node: of the typed op Op, or of an op that is given by its name. As an
// operand, it stands for the node's output 0; for other outputs, see
// operator[]. A handle that is used twice is one node with two uses.
//
// An attribute that is not set here follows from the inputs if it is their type
// or number; otherwise, it has the default of the op's definition. The rule
// does not apply if the definition in the running TensorFlow requires another
// attribute.
template <class... Op>
class NewNode : public Replacement {
 public:
  // Sets `attr` to `value`, or to the result of value(matched).
  template <class E, class V, class = kernel_internal::IfOpEnum<E>>
  NewNode Set(E attr, V value) const {
    return Add(attr, std::move(value), /*if_known=*/false);
  }
  // Does the same, but only if the op has the attribute in the running
  // TensorFlow. For attributes that some releases lack.
  template <class E, class V, class = kernel_internal::IfOpEnum<E>>
  NewNode SetIfKnown(E attr, V value) const {
    return Add(attr, std::move(value), /*if_known=*/true);
  }
  // Copies `attr` from the attribute of the same name of a matched node. Does
  // nothing if that node lacks the attribute or is not part of the match, or if
  // the op lacks it in the running TensorFlow.
  template <class... Ops, class E, class = kernel_internal::IfOpEnum<E>>
  NewNode Copy(const NodePattern<Ops...>& from, E attr) const {
    static_assert((patterns_internal::BelongsTo<E, Op>() || ...),
                  "tfplug: Copy takes an attribute of the new op, and copies "
                  "the matched node's attribute of the same name; for an op "
                  "that is given by its name, write the attribute's name as a "
                  "string");
    return AddCopy(from, kernel_internal::NameOf(attr), "", /*if_known=*/true);
  }

  // Does the same with the attribute's plain name, for ops that are given by
  // their name and for attributes newer than the headers. The value is a bool,
  // an integer, a float, a DataType, a string, a PartialShape, a std::vector of
  // one of these, or a function of the match that returns one.
  template <class V>
  NewNode Set(absl::string_view attr, V value) const {
    using Type = typename patterns_internal::NewAttrType<V>::Type;
    return AddAs<Type>(std::string(attr), std::move(value), /*if_known=*/false);
  }
  template <class V>
  NewNode SetIfKnown(absl::string_view attr, V value) const {
    using Type = typename patterns_internal::NewAttrType<V>::Type;
    return AddAs<Type>(std::string(attr), std::move(value), /*if_known=*/true);
  }
  NewNode Copy(const Pattern& from, absl::string_view attr) const {
    return AddCopy(from, std::string(attr), "", /*if_known=*/false);
  }
  // Copies the attribute `from_attr` of the matched node to `attr`.
  NewNode Copy(const Pattern& from, absl::string_view from_attr,
               absl::string_view attr) const {
    return AddCopy(from, std::string(attr), std::string(from_attr),
                   /*if_known=*/false);
  }

  // Lets the rule apply only if this library registers a kernel for the new
  // node: see PassContext::HasKernel.
  NewNode RequireKernel() const {
    tree().needs_kernel = true;
    return *this;
  }

  // Returns an output of the node, by its index or its typed name.
  Replacement operator[](int output) const {
    return Replacement(
        patterns_internal::ReplacementSource{source_.tree, output});
  }
  template <class E, class = kernel_internal::IfOpEnum<E>>
  Replacement operator[](E output) const {
    static_assert((patterns_internal::BelongsTo<E, Op>() || ...),
                  "tfplug: this output does not belong to the new op");
    return (*this)[kernel_internal::OutputIndex(output)];
  }

 private:
  template <class P, class... Inputs>
  friend NewNode<P> New(const Inputs&... inputs);
  template <class... Inputs>
  friend NewNode<> New(std::string op, const Inputs&... inputs);

  template <class... Inputs>
  explicit NewNode(std::string op, const Inputs&... inputs)
      : Replacement(Kind::kNode) {
    static_assert((std::is_convertible_v<Inputs, Replacement> && ...),
                  "tfplug: inputs must be matched patterns, New(...) or "
                  "NewConst(...)");
    tree().op = std::move(op);
    tree().inputs = {Replacement(inputs).source_...};
  }

  template <class E, class V>
  NewNode Add(E attr, V value, bool if_known) const {
    static_assert((patterns_internal::BelongsTo<E, Op>() || ...),
                  "tfplug: this attribute does not belong to the new op; for "
                  "an op that is given by its name, write the attribute's name "
                  "as a string");
    return AddAs<kernel_internal::AttrType<E>>(kernel_internal::NameOf(attr),
                                               std::move(value), if_known);
  }
  template <class T, class V>
  NewNode AddAs(std::string name, V value, bool if_known) const {
    patterns_internal::NewAttr attr;
    attr.name = std::move(name);
    attr.if_known = if_known;
    patterns_internal::Assign<T>(std::move(value), attr);
    tree().attrs.push_back(std::move(attr));
    return *this;
  }
  NewNode AddCopy(const Pattern& from, std::string name, std::string from_name,
                  bool if_known) const {
    patterns_internal::NewAttr attr;
    attr.name = std::move(name);
    attr.if_known = if_known;
    attr.copy_from = internal::Access::output(from).element;
    attr.copy_name = std::move(from_name);
    tree().attrs.push_back(std::move(attr));
    return *this;
  }
};

// Returns a new node. The inputs are matched values, new nodes and new
// constants. Each element of a list is a separate input; a handle that matched
// several values (see Each) stands for all of them.
template <class O, class... Inputs>
NewNode<O> New(const Inputs&... inputs) {
  static_assert(patterns_internal::kIsTypedOp<O>,
                "tfplug: New takes a typed op, such as "
                "ops::InternalFusedMatMul, or the name of an op");
  static_assert(patterns_internal::TakesInputs<O>(sizeof...(Inputs)),
                "tfplug: New<Op>(...) has more or fewer values than the op has "
                "inputs; tfplug/ops/ lists them");
  return NewNode<O>(O::kName, inputs...);
}

// Does the same as New above with the name of the op as a string, for your own
// ops and for ops that are newer than the headers:
//
//   New("MyAttention", q, k, v).Set("scale", 0.125f).RequireKernel()
template <class... Inputs>
NewNode<> New(std::string op, const Inputs&... inputs) {
  return NewNode<>(std::move(op), inputs...);
}

// Returns a new constant. value(matched) computes it as a Constant or a
// StatusOr<Constant>; after an error, the rule does not apply.
template <class F>
Replacement NewConst(F value) {
  Replacement constant(patterns_internal::ReplacementTree::Kind::kConst);
  constant.tree().op = "Const";
  constant.tree().value = std::move(value);
  return constant;
}
// Does the same for a constant that does not depend on the match.
inline Replacement NewConst(Constant value) {
  return NewConst([value = std::move(value)](const Matched&) { return value; });
}

// A pattern and the replacement of its matches.
class Rule {
 public:
  // `name` appears in explanations and errors. `root` is a node pattern, or a
  // OneOf or Optional of node patterns.
  Rule(std::string name, const Pattern& root) {
    data_.name = std::move(name);
    data_.root = internal::Access::output(root);
  }

  // Adds a condition on the whole match, which is checked last. `description`
  // states the condition, for explanations: "the bias is a vector".
  Rule OnlyIf(std::string description,
              std::function<bool(const Matched&)> predicate) && {
    data_.conditions.push_back({std::move(description), std::move(predicate)});
    return std::move(*this);
  }
  // Rules of higher priority are tried first; at equal priority, patterns with
  // more nodes. The default is 0.
  Rule Priority(int priority) && {
    data_.priority = priority;
    return std::move(*this);
  }
  Rule ReplaceBy(const Replacement& replacement) && {
    data_.replacement = internal::Access::source(replacement);
    return std::move(*this);
  }
  // Replaces another output, too, wherever nodes outside the match use it:
  //
  //  * an output of an inner node of the pattern, which may then have other
  //    uses, such as a statistic that a gradient needs;
  //  * another output of the root;
  //  * an output of a further node that has an input in common with the
  //    pattern. The rule then matches only if there is such a node. Of several,
  //    the first one is taken that the rule can replace. After 64 for which a
  //    condition or the check for cycles fails, the rule does not apply.
  //
  // Does nothing where the match does not contain the node (Optional, OneOf).
  Rule AlsoReplace(const Pattern& result, const Replacement& replacement) && {
    data_.results.push_back(internal::Access::output(result));
    data_.result_replacements.push_back(internal::Access::source(replacement));
    return std::move(*this);
  }

 private:
  friend struct internal::Access;

  patterns_internal::RuleData data_;
};

}  // namespace tfplug::patterns

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_RULE_H_
