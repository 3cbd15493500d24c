// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_INTERNAL_PATTERN_PLAN_H_
#define TFPLUG_INTERNAL_PATTERN_PLAN_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/matched.h"
#include "tfplug/graph/op_signature.h"
#include "tfplug/graph/pattern_rule.h"
#include "tfplug/internal/pattern_mismatch.h"
#include "tfplug/internal/pattern_replacement.h"

namespace tfplug::internal {

// All that a replacement needs and that can stand in its way, asked before
// anything is changed: conditions, ops, kernels, computed values.
class PatternPlan {
 public:
  void Clear() {
    values_.clear();
    constants_.clear();
    copies_.clear();
    sources_.clear();
    signatures_.clear();
    next_value_ = next_constant_ = next_copy_ = 0;
  }

  // False if the rule does not apply: see mismatch().
  bool Make(const Rule& rule, const Matched& matched,
            const PassContext& context) {
    for (const Rule::Condition& condition : rule.conditions()) {
      if (!condition.holds(matched)) {
        return Fail(Mismatch::Why::kCondition, condition.words);
      }
    }
    return Prepare(*rule.replacement(), matched, context);
  }
  const Mismatch& mismatch() const { return mismatch_; }

  // Computed attributes and constants, in the order of the tree.
  const AttrValue& NextValue() { return values_[next_value_++]; }
  // The AttrValue of an attribute to copy; null data if there is none.
  absl::string_view NextCopy() { return copies_[next_copy_++]; }
  const Constant& NextConstant() { return constants_[next_constant_++]; }

  // Whether `attr` is to be set on the new node.
  bool IsKnown(const ReplacementTree& tree, const NewAttr& attr) const {
    return !attr.if_known || SignatureOf(tree).FindAttr(attr.name) != nullptr;
  }
  // What the op has besides `set`, and a default for.
  void SetDefaults(const ReplacementTree& tree,
                   const std::vector<absl::string_view>& set, Node node) const {
    for (const OpSignature::Attr& attr : SignatureOf(tree).attrs) {
      if (!attr.has_default ||
          std::find(set.begin(), set.end(), attr.name) != set.end()) {
        continue;
      }
      node.SetRawAttr(attr.name, attr.default_value);
    }
  }

 private:
  // The last to be asked, so the furthest.
  static constexpr int kProgress = 1 << 24;

  bool Fail(Mismatch::Why why, std::string words) {
    mismatch_ = Mismatch();
    mismatch_.why = why;
    mismatch_.progress = kProgress;
    mismatch_.words = std::move(words);
    return false;
  }

  const OpSignature& SignatureOf(const ReplacementTree& tree) const {
    size_t i = 0;
    while (signatures_[i].first != &tree) ++i;
    return *signatures_[i].second;
  }

  // In the order in which PatternEditor makes the nodes: inputs first.
  bool Prepare(const ReplacementTree& tree, const Matched& matched,
               const PassContext& context) {
    if (tree.kind == ReplacementTree::Kind::kMatched) return true;
    if (tree.kind == ReplacementTree::Kind::kConst) {
      absl::StatusOr<Constant> constant = tree.value(matched);
      if (!constant.ok()) {
        return Fail(Mismatch::Why::kConstant,
                    std::string(constant.status().message()));
      }
      constants_.push_back(*std::move(constant));
      return true;
    }
    for (const auto& input : tree.inputs) {
      if (!Prepare(*input, matched, context)) return false;
    }
    for (const NewAttr& attr : tree.attrs) {
      if (attr.copy_from != nullptr) {
        copies_.push_back(CopiedFrom(attr, matched));
      } else if (attr.function != nullptr) {
        values_.push_back(attr.function(matched));
      }
    }
    return CheckOp(tree, matched, context) &&
           (!tree.needs_kernel || CheckKernel(tree, matched, context));
  }

  // The attribute of the matched node, whose attributes are read once for all.
  absl::string_view CopiedFrom(const NewAttr& attr, const Matched& matched) {
    const Node from = matched[PatternOutput{attr.copy_from, 0}].node;
    if (!from) return {};
    const Source* source = nullptr;
    for (const Source& known : sources_) {
      if (known.node == from) source = &known;
    }
    if (source == nullptr) {
      sources_.push_back({from, from.attrs()});
      source = &sources_.back();
    }
    for (const auto& [name, value] : source->attrs) {
      if (name == attr.name) return value;
    }
    return {};
  }

  bool CheckOp(const ReplacementTree& tree, const Matched& matched,
               const PassContext& context) {
    const absl::StatusOr<const OpSignature*> signature =
        context.functions().LookUp(tree.op);
    if (!signature.ok()) {
      return Fail(Mismatch::Why::kUnknownOp,
                  "TensorFlow says of the op " + tree.op + ": " +
                      std::string(signature.status().message()));
    }
    signatures_.emplace_back(&tree, *signature);
    for (const OpSignature::Attr& attr : (*signature)->attrs) {
      if (!attr.has_default && !IsSet(tree, attr.name, matched)) {
        return Fail(Mismatch::Why::kUnknownOp,
                    "this TensorFlow's " + tree.op + " wants the attribute " +
                        attr.name + ", which the rule does not set");
      }
    }
    for (const NewAttr& attr : tree.attrs) {
      if (!attr.if_known && attr.copy_from == nullptr &&
          (*signature)->FindAttr(attr.name) == nullptr) {
        return Fail(
            Mismatch::Why::kUnknownOp,
            "this TensorFlow's " + tree.op + " has no attribute " + attr.name);
      }
    }
    return true;
  }
  bool IsSet(const ReplacementTree& tree, absl::string_view name,
             const Matched& matched) {
    for (const NewAttr& attr : tree.attrs) {
      if (attr.name != name) continue;
      if (attr.copy_from == nullptr) return true;
      if (CopiedFrom(attr, matched).data() != nullptr) return true;
    }
    return false;
  }

  using Types = std::vector<std::pair<absl::string_view, DataType>>;
  static bool HasKernel(const PassContext& context, const std::string& op,
                        const Types& types) {
    switch (types.size()) {
      case 0:
        return context.HasKernel(op, {});
      case 1:
        return context.HasKernel(op, {types[0]});
      case 2:
        return context.HasKernel(op, {types[0], types[1]});
      default:  // More than any fused op has.
        return context.HasKernel(op, {types[0], types[1], types[2]});
    }
  }
  bool CheckKernel(const ReplacementTree& tree, const Matched& matched,
                   const PassContext& context) {
    Types types;
    for (const NewAttr& attr : tree.attrs) {
      if (!attr.is_type) continue;
      if (const auto* type = std::get_if<DataType>(&attr.value);
          type != nullptr && attr.copy_from == nullptr) {
        types.emplace_back(attr.name, *type);
      } else if (attr.copy_from != nullptr) {
        const auto copied =
            AttrCodec<DataType>::Decode(CopiedFrom(attr, matched));
        if (copied.has_value()) types.emplace_back(attr.name, *copied);
      }
    }
    const Node root = matched.root();
    if (root.device().empty()) {
      return Fail(Mismatch::Why::kNoKernel,
                  Quoted(root) +
                      " has no device yet, so that it is not known which "
                      "kernel it will have");
    }
    if (HasKernel(context, tree.op, types)) return true;
    std::string words;
    for (const auto& [name, type] : types) {
      words += (words.empty() ? " with " : ", ") + std::string(name) + "=" +
               DataTypeName(type);
    }
    return Fail(Mismatch::Why::kNoKernel, "there is no kernel for " + tree.op +
                                              words + " on " +
                                              context.device_type());
  }

  Mismatch mismatch_;
  struct Source {
    Node node;
    std::vector<std::pair<absl::string_view, absl::string_view>> attrs;
  };
  std::vector<Source> sources_;
  std::vector<AttrValue> values_;
  std::vector<absl::string_view> copies_;
  std::vector<Constant> constants_;
  std::vector<std::pair<const ReplacementTree*, const OpSignature*>>
      signatures_;
  size_t next_value_ = 0;
  size_t next_copy_ = 0;
  size_t next_constant_ = 0;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_INTERNAL_PATTERN_PLAN_H_
