// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_PLAN_H_
#define TFPLUG_PATTERNS_INTERNAL_PLAN_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/op_signature.h"
#include "tfplug/patterns/internal/mismatch.h"
#include "tfplug/patterns/internal/replacement.h"
#include "tfplug/patterns/matched.h"
#include "tfplug/patterns/rule.h"

namespace tfplug::internal {

// All that a replacement needs and that can stand in its way, asked before
// anything is changed: conditions, ops, kernels, computed values.
class PatternPlan {
 public:
  void Clear() {
    values_.clear();
    constants_.clear();
    copies_.clear();
    num_sources_ = 0;
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
    return *ops_[IndexOf(tree)].signature;
  }
  size_t IndexOf(const ReplacementTree& tree) const {
    size_t i = 0;
    while (i < ops_.size() && ops_[i].tree != &tree) ++i;
    return i;
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
    const size_t first_copy = copies_.size();
    for (const NewAttr& attr : tree.attrs) {
      if (attr.copy_from != nullptr) {
        copies_.push_back(CopiedFrom(attr, matched));
      } else if (attr.function != nullptr) {
        values_.push_back(attr.function(matched));
      }
    }
    return CheckOp(tree, first_copy, context) &&
           (!tree.needs_kernel || CheckKernel(tree, matched, context));
  }

  // The attribute of the matched node, whose attributes are read once for all.
  absl::string_view CopiedFrom(const NewAttr& attr, const Matched& matched) {
    const Node from = matched[PatternOutput{attr.copy_from, 0}].node;
    if (!from) return {};
    size_t i = 0;
    while (i < num_sources_ && sources_[i].node != from) ++i;
    if (i == num_sources_) AddSource(from);
    for (const auto& [name, value] : sources_[i].attrs) {
      if (name == attr.name) return value;
    }
    return {};
  }
  // In memory that an earlier match has left.
  void AddSource(const Node& node) {
    if (num_sources_ == sources_.size()) sources_.emplace_back();
    Source& source = sources_[num_sources_++];
    source.node = node;
    source.attrs.clear();
    Access::state(node)->ForEachAttr(
        node.id(), [&](absl::string_view name, absl::string_view value) {
          source.attrs.emplace_back(name, value);
        });
  }

  // `first_copy`: that of the tree's first attribute that is copied.
  bool CheckOp(const ReplacementTree& tree, size_t first_copy,
               const PassContext& context) {
    const size_t i = IndexOf(tree);
    if (i == ops_.size()) ops_.push_back(AskFor(tree, context));
    const Op& op = ops_[i];
    if (!op.problem.empty()) return Fail(Mismatch::Why::kUnknownOp, op.problem);
    for (const Demand& demand : op.demands) {
      bool is_set = false;
      for (size_t copy : demand.copies) {
        is_set = is_set || copies_[first_copy + copy].data() != nullptr;
      }
      if (!is_set) {
        return Fail(Mismatch::Why::kUnknownOp,
                    "this TensorFlow's " + tree.op + " wants the attribute " +
                        demand.attr + ", which the rule does not set");
      }
    }
    return true;
  }
  // An attribute without a default that is only set where one of the tree's
  // copies, counted from its first, finds something.
  struct Demand {
    std::string attr;
    std::vector<size_t> copies;
  };
  // What TensorFlow says of a tree's op, the same for all matches.
  struct Op {
    const ReplacementTree* tree;
    const OpSignature* signature;
    std::string problem;  // Why it cannot be used.
    std::vector<Demand> demands;
  };
  static Op AskFor(const ReplacementTree& tree, const PassContext& context) {
    const absl::StatusOr<const OpSignature*> signature =
        context.functions().GetSignature(tree.op);
    if (!signature.ok()) {
      return {&tree,
              nullptr,
              "TensorFlow says of the op " + tree.op + ": " +
                  std::string(signature.status().message()),
              {}};
    }
    Op op = {&tree, *signature, "", {}};
    for (const OpSignature::Attr& attr : (*signature)->attrs) {
      if (attr.has_default) continue;
      Demand demand = {attr.name, {}};
      bool is_set = false;
      size_t copy = 0;
      for (const NewAttr& set : tree.attrs) {
        const bool copied = set.copy_from != nullptr;
        if (set.name == attr.name && copied) demand.copies.push_back(copy);
        is_set = is_set || (set.name == attr.name && !copied);
        copy += copied ? 1 : 0;
      }
      if (!is_set) op.demands.push_back(std::move(demand));
    }
    for (const NewAttr& attr : tree.attrs) {
      if (!attr.if_known && attr.copy_from == nullptr &&
          (*signature)->FindAttr(attr.name) == nullptr) {
        op.problem =
            "this TensorFlow's " + tree.op + " has no attribute " + attr.name;
        break;
      }
    }
    return op;
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
  std::vector<Source> sources_;  // num_sources_ of them are this match's.
  size_t num_sources_ = 0;
  std::vector<AttrValue> values_;
  std::vector<absl::string_view> copies_;
  std::vector<Constant> constants_;
  std::vector<Op> ops_;
  size_t next_value_ = 0;
  size_t next_copy_ = 0;
  size_t next_constant_ = 0;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_PATTERNS_INTERNAL_PLAN_H_
