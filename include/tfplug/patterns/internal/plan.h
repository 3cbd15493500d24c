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
#include "tfplug/kernel/internal/kernel_set.h"
#include "tfplug/patterns/internal/mismatch.h"
#include "tfplug/patterns/internal/replacement.h"
#include "tfplug/patterns/matched.h"

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// Evaluates everything that can prevent a replacement before the graph is
// changed: conditions, op definitions, kernels and computed values.
class PatternPlan {
 public:
  void Clear() {
    values_.clear();
    constants_.clear();
    copies_.clear();
    num_sources_ = 0;
    next_value_ = next_constant_ = next_copy_ = 0;
  }

  // Returns false if the rule does not apply: see mismatch().
  bool Prepare(const RuleData& rule, const Matched& matched,
               const PassContext& context) {
    for (const RuleData::Condition& condition : rule.conditions) {
      if (!condition.predicate(matched)) {
        return Fail(Reason::kCondition, condition.description);
      }
    }
    return PrepareTree(*rule.replacement, matched, context);
  }
  const Mismatch& mismatch() const { return mismatch_; }

  // Return the computed attributes and constants one by one, in the order of
  // the tree.
  const AttrValue& NextValue() { return values_[next_value_++]; }
  // Returns the serialized AttrValue to copy; null data if there is none.
  absl::string_view NextCopy() { return copies_[next_copy_++]; }
  const Constant& NextConstant() { return constants_[next_constant_++]; }

  // Whether `attr` must be set on the new node.
  bool IsKnown(const ReplacementTree& tree, const NewAttr& attr) const {
    return !attr.if_known || SignatureOf(tree).FindAttr(attr.name) != nullptr;
  }
  // Sets the defaults of the op's attributes that are not in `set`.
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
  using Reason = Mismatch::Reason;

  // Greater than every Mismatch::progress of the matcher.
  static constexpr int kProgress = 1 << 24;

  bool Fail(Reason reason, std::string text) {
    mismatch_ = Mismatch();
    mismatch_.reason = reason;
    mismatch_.progress = kProgress;
    mismatch_.text = std::move(text);
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

  // Evaluates a tree in the order in which PatternEditor adds its nodes: inputs
  // first.
  bool PrepareTree(const ReplacementTree& tree, const Matched& matched,
                   const PassContext& context) {
    if (tree.kind == ReplacementTree::Kind::kMatched) return true;
    if (tree.kind == ReplacementTree::Kind::kConst) {
      absl::StatusOr<Constant> constant = tree.value(matched);
      if (!constant.ok()) {
        return Fail(Reason::kConstant,
                    std::string(constant.status().message()));
      }
      constants_.push_back(*std::move(constant));
      return true;
    }
    for (const auto& input : tree.inputs) {
      if (!PrepareTree(*input, matched, context)) return false;
    }
    const size_t first_copy = copies_.size();
    for (const NewAttr& attr : tree.attrs) {
      if (attr.copy_from != nullptr) {
        copies_.push_back(FindCopy(attr, matched));
      } else if (attr.function != nullptr) {
        values_.push_back(attr.function(matched));
      }
    }
    return CheckOp(tree, first_copy, context) &&
           (!tree.needs_kernel || CheckKernel(tree, matched, context));
  }

  // Returns the attribute of the matched node; null data if there is none.
  absl::string_view FindCopy(const NewAttr& attr, const Matched& matched) {
    const Node from =
        Access::Find(matched, PatternOutput{attr.copy_from, 0}).node;
    if (!from) return {};
    size_t i = 0;
    while (i < num_sources_ && sources_[i].node != from) ++i;
    if (i == num_sources_) AddSource(from);
    for (const auto& [name, value] : sources_[i].attrs) {
      if (name == attr.name) return value;
    }
    return {};
  }
  // Reads the node's attributes once for all copies, and reuses the memory of
  // earlier matches.
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

  // `first_copy`: the index of the tree's first copied attribute.
  bool CheckOp(const ReplacementTree& tree, size_t first_copy,
               const PassContext& context) {
    const size_t i = IndexOf(tree);
    if (i == ops_.size()) ops_.push_back(LookUp(tree, context));
    const Op& op = ops_[i];
    if (!op.problem.empty()) return Fail(Reason::kOp, op.problem);
    for (const RequiredAttr& attr : op.required) {
      bool is_set = false;
      for (size_t copy : attr.copies) {
        is_set = is_set || copies_[first_copy + copy].data() != nullptr;
      }
      if (!is_set) {
        return Fail(Reason::kOp, "this TensorFlow's " + tree.op +
                                     " requires attribute " + attr.name +
                                     ", which the rule does not set");
      }
    }
    return true;
  }
  // An attribute without a default that the rule does not Set(). One of the
  // tree's copies, given by its index within the tree, must find it.
  struct RequiredAttr {
    std::string name;
    std::vector<size_t> copies;
  };
  // TensorFlow's definition of a tree's op, which is the same for all matches.
  struct Op {
    const ReplacementTree* tree;
    const OpSignature* signature = nullptr;
    std::string problem;  // Why the op cannot be used; empty: it can.
    std::vector<RequiredAttr> required;
  };
  static Op LookUp(const ReplacementTree& tree, const PassContext& context) {
    Op op = {&tree, nullptr, "", {}};
    const absl::StatusOr<const OpSignature*> signature =
        context.functions().GetSignature(tree.op);
    if (!signature.ok()) {
      op.problem = "TensorFlow cannot look up op " + tree.op + ": " +
                   std::string(signature.status().message());
      return op;
    }
    op.signature = *signature;
    for (const OpSignature::Attr& attr : op.signature->attrs) {
      if (attr.has_default) continue;
      RequiredAttr required = {attr.name, {}};
      bool is_set = false;
      size_t copy = 0;
      for (const NewAttr& set : tree.attrs) {
        const bool copied = set.copy_from != nullptr;
        if (set.name == attr.name && copied) required.copies.push_back(copy);
        is_set = is_set || (set.name == attr.name && !copied);
        copy += copied ? 1 : 0;
      }
      if (!is_set) op.required.push_back(std::move(required));
    }
    for (const NewAttr& attr : tree.attrs) {
      if (!attr.if_known && attr.copy_from == nullptr &&
          op.signature->FindAttr(attr.name) == nullptr) {
        op.problem =
            "this TensorFlow's " + tree.op + " has no attribute " + attr.name;
        break;
      }
    }
    return op;
  }

  bool CheckKernel(const ReplacementTree& tree, const Matched& matched,
                   const PassContext& context) {
    std::vector<TypeAttr> types;
    for (const NewAttr& attr : tree.attrs) {
      if (!attr.is_type) continue;
      if (const auto* type = std::get_if<DataType>(&attr.value);
          type != nullptr && attr.copy_from == nullptr) {
        types.emplace_back(attr.name, *type);
      } else if (attr.copy_from != nullptr) {
        const auto copied =
            AttrCodec<DataType>::Decode(FindCopy(attr, matched));
        if (copied.has_value()) types.emplace_back(attr.name, *copied);
      }
    }
    const Node root = matched.root();
    if (root.device().empty()) {
      return Fail(Reason::kNoKernel,
                  Describe(root) +
                      " has no device yet, so its kernel cannot be determined");
    }
    if (context.HasKernel(tree.op, types)) return true;
    std::string text = "no kernel is registered for " + tree.op;
    const char* separator = " with ";
    for (const auto& [name, type] : types) {
      text += separator + std::string(name) + "=" + DataTypeName(type);
      separator = ", ";
    }
    return Fail(Reason::kNoKernel, text + " on " + context.device_type());
  }

  // A node from which attributes are copied.
  struct Source {
    Node node;
    std::vector<std::pair<absl::string_view, absl::string_view>> attrs;
  };

  Mismatch mismatch_;
  std::vector<Source> sources_;  // The first num_sources_ are this match's.
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

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_PLAN_H_
