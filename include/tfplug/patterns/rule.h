// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_RULE_H_
#define TFPLUG_PATTERNS_RULE_H_

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/constant.h"
#include "tfplug/patterns/internal/replacement.h"
#include "tfplug/patterns/matched.h"
#include "tfplug/patterns/pattern.h"

// What to put in a pattern's place. With the handles of patterns/pattern.h:
//
//   Rule rule =
//       Rule("MatMul + bias + activation", root)
//           .OnlyIf("the bias is a vector", [=](const Matched& m) { ... })
//           .ReplaceBy(New<ops::InternalFusedMatMul>(x, w, b)
//                          .Copy(product, ops::InternalFusedMatMul::T_attr)
//                          .Copy(product,
//                          ops::InternalFusedMatMul::transpose_a)
//                          .Set(ops::InternalFusedMatMul::num_args, 1)
//                          .Set(ops::InternalFusedMatMul::fused_ops, [=](auto&
//                          m) {
//                            return std::vector<std::string>{
//                                "BiasAdd", std::string(m.node(root).op())};
//                          }));
//
// The new node takes the place of the pattern's outermost one, the root: its
// name, device, uses, and attributes that begin with an underscore. The other
// matched nodes go. patterns/rules.h does it, and says when it does not.
namespace tfplug {

// What a replacement is made of: a new node, a new constant, or something that
// was matched.
class Replacement {
 public:
  // A matched value in the root's place. Where the root's name must stay (it is
  // preserved, or something waits for it), it becomes an Identity.
  Replacement(const Pattern& matched)
      : tree_(std::make_shared<internal::ReplacementTree>()) {
    tree_->kind = internal::ReplacementTree::Kind::kMatched;
    tree_->matched = matched.output();
  }

  // The mechanism's.
  const std::shared_ptr<internal::ReplacementTree>& tree() const {
    return tree_;
  }

 protected:
  Replacement() : tree_(std::make_shared<internal::ReplacementTree>()) {}

 private:
  template <class F>
  friend Replacement NewConst(F value);

  std::shared_ptr<internal::ReplacementTree> tree_;
};

// A new node of op O. What the running TensorFlow's definition of the op
// demands beyond what is set here, and gives no default for, keeps the rule
// from being used; attributes with defaults are filled in.
template <class O>
class NewNode : public Replacement {
 public:
  // `attr` of the new node becomes `value`, or what `value(matched)` returns.
  template <class E, class V, class = internal::IfOpEnum<E>>
  NewNode Set(E attr, V value) const {
    return Add(attr, std::move(value), /*if_known=*/false);
  }
  // The same where the running TensorFlow's op has the attribute: for those
  // that not all releases have.
  template <class E, class V, class = internal::IfOpEnum<E>>
  NewNode SetIfKnown(E attr, V value) const {
    return Add(attr, std::move(value), /*if_known=*/true);
  }
  // `attr` becomes what the attribute of the same name is in the matched node;
  // left alone where that does not have it, or was not matched at all.
  template <class... Ops, class E, class = internal::IfOpEnum<E>>
  NewNode Copy(const NodePattern<Ops...>& from, E attr) const {
    static_assert(internal::BelongsTo<E, O>(),
                  "tfplug: Copy takes an attribute of the new op; the matched "
                  "node's is the one of the same name");
    return AddCopy(from, internal::NameOf(attr),
                   std::is_same_v<internal::AttrType<E>, DataType>);
  }

  // By plain names, for attributes newer than the headers: bool, int64_t,
  // float, DataType, std::string, PartialShape, and a std::vector of these.
  template <class T>
  NewNode Set(absl::string_view attr, T value) const {
    return AddAs<T>(std::string(attr), std::move(value), /*if_known=*/false);
  }
  template <class T>
  NewNode SetIfKnown(absl::string_view attr, T value) const {
    return AddAs<T>(std::string(attr), std::move(value), /*if_known=*/true);
  }

  // Only where the plug-in has registered a kernel for the new node, its device
  // and types (or runs on core's own kernels: see PassContext::HasKernel).
  NewNode RequireKernel() const {
    tree()->needs_kernel = true;
    return *this;
  }

 private:
  template <class P, class... Inputs>
  friend NewNode<P> New(const Inputs&... inputs);
  friend class Rule;

  NewNode() { tree()->kind = internal::ReplacementTree::Kind::kNode; }

  template <class E, class V>
  NewNode Add(E attr, V value, bool if_known) const {
    static_assert(internal::BelongsTo<E, O>(),
                  "tfplug: this attribute belongs to another op than the new "
                  "node's");
    return AddAs<internal::AttrType<E>>(internal::NameOf(attr),
                                        std::move(value), if_known);
  }
  template <class T, class V>
  NewNode AddAs(std::string name, V value, bool if_known) const {
    internal::NewAttr attr;
    attr.name = std::move(name);
    attr.if_known = if_known;
    internal::Assign<T>(std::move(value), attr);
    tree()->attrs.push_back(std::move(attr));
    return *this;
  }
  NewNode AddCopy(const Pattern& from, std::string name, bool is_type) const {
    internal::NewAttr attr;
    attr.name = std::move(name);
    attr.is_type = is_type;
    attr.copy_from = from.spec();
    tree()->attrs.push_back(std::move(attr));
    return *this;
  }
};

// The inputs are matched values, new nodes and new constants. Those of a list
// are inputs of their own, and the attribute with their number is yours to set.
template <class O, class... Inputs>
NewNode<O> New(const Inputs&... inputs) {
  static_assert(
      internal::kIsTypedOp<O>,
      "tfplug: New takes a typed op, such as ops::InternalFusedMatMul");
  static_assert(
      (std::is_convertible_v<Inputs, Replacement> && ...),
      "tfplug: inputs are matched patterns, New(...) or NewConst(...)");
  static_assert(
      internal::TakesInputs<O>(sizeof...(Inputs)),
      "tfplug: this is not the number of inputs that the new op takes");
  NewNode<O> node;
  node.tree()->op = O::kName;
  node.tree()->inputs = {Replacement(inputs).tree()...};
  return node;
}

// A new constant: value(matched) returns it as a Constant, or a
// StatusOr<Constant>, whose error means that the rule does not apply after all.
template <class F>
Replacement NewConst(F value) {
  Replacement constant;
  constant.tree()->kind = internal::ReplacementTree::Kind::kConst;
  constant.tree()->op = "Const";
  constant.tree()->value = std::move(value);
  return constant;
}

// What to look for, and what to put there.
class Rule {
 public:
  // `name` is for explanations and errors. `root` is a node pattern, or a OneOf
  // or Optional of such.
  Rule(std::string name, const Pattern& root)
      : name_(std::move(name)), root_(root.output()) {}

  // A condition on the whole match, which the engine asks last; `words` is what
  // must hold: "the bias is a vector".
  Rule OnlyIf(std::string words, std::function<bool(const Matched&)> holds) && {
    conditions_.push_back({std::move(words), std::move(holds)});
    return std::move(*this);
  }
  // Rules of a higher priority come first; among equals (0) the bigger pattern.
  Rule Priority(int priority) && {
    priority_ = priority;
    return std::move(*this);
  }
  Rule ReplaceBy(Replacement replacement) && {
    replacement_ = replacement.tree();
    return std::move(*this);
  }

  const std::string& name() const { return name_; }
  int priority() const { return priority_; }
  const internal::PatternOutput& root() const { return root_; }

  struct Condition {
    std::string words;
    std::function<bool(const Matched&)> holds;
  };
  const std::vector<Condition>& conditions() const { return conditions_; }
  const std::shared_ptr<internal::ReplacementTree>& replacement() const {
    return replacement_;
  }

 private:
  std::string name_;
  internal::PatternOutput root_;
  int priority_ = 0;
  std::vector<Condition> conditions_;
  std::shared_ptr<internal::ReplacementTree> replacement_;
};

}  // namespace tfplug

#endif  // TFPLUG_PATTERNS_RULE_H_
