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
//                          .Copy(product, Fused::T_attr)
//                          .Copy(product, Fused::transpose_a)
//                          .Set(Fused::num_args, 1)
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
    tree_->matched = internal::Access::output(matched);
  }

 protected:
  using Kind = internal::ReplacementTree::Kind;

  explicit Replacement(Kind kind)
      : tree_(std::make_shared<internal::ReplacementTree>()) {
    tree_->kind = kind;
  }
  internal::ReplacementTree& tree() const { return *tree_; }

 private:
  friend struct internal::Access;
  template <class F>
  friend Replacement NewConst(F value);

  std::shared_ptr<internal::ReplacementTree> tree_;
};

// A new node of op O. Attributes that are not set here get the defaults of the
// op's definition. The rule does not apply if the definition in the running
// TensorFlow requires an attribute that is not set and has no default.
template <class O>
class NewNode : public Replacement {
 public:
  // Sets `attr` to `value`, or to the result of value(matched).
  template <class E, class V, class = internal::IfOpEnum<E>>
  NewNode Set(E attr, V value) const {
    return Add(attr, std::move(value), /*if_known=*/false);
  }
  // The same, but only if the op has the attribute in the running TensorFlow.
  // For attributes that some releases lack.
  template <class E, class V, class = internal::IfOpEnum<E>>
  NewNode SetIfKnown(E attr, V value) const {
    return Add(attr, std::move(value), /*if_known=*/true);
  }
  // Copies `attr` from the attribute of the same name of a matched node. Does
  // nothing if that node lacks the attribute or is not part of the match.
  template <class... Ops, class E, class = internal::IfOpEnum<E>>
  NewNode Copy(const NodePattern<Ops...>& from, E attr) const {
    static_assert(internal::BelongsTo<E, O>(),
                  "tfplug: Copy takes an attribute of the new op, and copies "
                  "the matched node's attribute of the same name");
    return AddCopy(from, internal::NameOf(attr),
                   std::is_same_v<internal::AttrType<E>, DataType>);
  }

  // Sets an attribute by its plain name, for attributes newer than the headers.
  // The value is a bool, int64_t, float, DataType, std::string, PartialShape,
  // or a std::vector of one of these.
  template <class T>
  NewNode Set(absl::string_view attr, T value) const {
    return AddAs<T>(std::string(attr), std::move(value), /*if_known=*/false);
  }
  template <class T>
  NewNode SetIfKnown(absl::string_view attr, T value) const {
    return AddAs<T>(std::string(attr), std::move(value), /*if_known=*/true);
  }

  // Lets the rule apply only if this library registers a kernel for the new
  // node: see PassContext::HasKernel.
  NewNode RequireKernel() const {
    tree().needs_kernel = true;
    return *this;
  }

 private:
  template <class P, class... Inputs>
  friend NewNode<P> New(const Inputs&... inputs);

  NewNode() : Replacement(Kind::kNode) {}

  template <class E, class V>
  NewNode Add(E attr, V value, bool if_known) const {
    static_assert(internal::BelongsTo<E, O>(),
                  "tfplug: this attribute does not belong to the new op");
    return AddAs<internal::AttrType<E>>(internal::NameOf(attr),
                                        std::move(value), if_known);
  }
  template <class T, class V>
  NewNode AddAs(std::string name, V value, bool if_known) const {
    internal::NewAttr attr;
    attr.name = std::move(name);
    attr.if_known = if_known;
    internal::Assign<T>(std::move(value), attr);
    tree().attrs.push_back(std::move(attr));
    return *this;
  }
  NewNode AddCopy(const Pattern& from, std::string name, bool is_type) const {
    internal::NewAttr attr;
    attr.name = std::move(name);
    attr.is_type = is_type;
    attr.copy_from = internal::Access::output(from).element;
    tree().attrs.push_back(std::move(attr));
    return *this;
  }
};

// Returns a new node. The inputs are matched values, new nodes and new
// constants. Each element of a list is a separate input. The caller must set
// the attribute that holds the length of a list.
template <class O, class... Inputs>
NewNode<O> New(const Inputs&... inputs) {
  static_assert(
      internal::kIsTypedOp<O>,
      "tfplug: New takes a typed op, such as ops::InternalFusedMatMul");
  static_assert((std::is_convertible_v<Inputs, Replacement> && ...),
                "tfplug: inputs must be matched patterns, New(...) or "
                "NewConst(...)");
  static_assert(internal::TakesInputs<O>(sizeof...(Inputs)),
                "tfplug: wrong number of inputs for the new op");
  NewNode<O> node;
  node.tree().op = O::kName;
  node.tree().inputs = {internal::Access::tree(Replacement(inputs))...};
  return node;
}

// Returns a new constant. value(matched) computes it as a Constant or a
// StatusOr<Constant>; after an error, the rule does not apply.
template <class F>
Replacement NewConst(F value) {
  Replacement constant(internal::ReplacementTree::Kind::kConst);
  constant.tree().op = "Const";
  constant.tree().value = std::move(value);
  return constant;
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
  Rule ReplaceBy(Replacement replacement) && {
    data_.replacement = internal::Access::tree(replacement);
    return std::move(*this);
  }

 private:
  friend struct internal::Access;

  internal::RuleData data_;
};

}  // namespace tfplug::patterns

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_RULE_H_
