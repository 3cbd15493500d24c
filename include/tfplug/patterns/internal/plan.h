// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_PLAN_H_
#define TFPLUG_PATTERNS_INTERNAL_PLAN_H_

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/op_signature.h"
#include "tfplug/graph/ranges.h"
#include "tfplug/kernel/internal/kernel_set.h"
#include "tfplug/patterns/internal/dependency.h"
#include "tfplug/patterns/internal/infer.h"
#include "tfplug/patterns/internal/mismatch.h"
#include "tfplug/patterns/internal/new_op.h"
#include "tfplug/patterns/internal/replacement.h"
#include "tfplug/patterns/matched.h"

#pragma GCC visibility push(hidden)

namespace tfplug::patterns_internal {

// Evaluates everything that can prevent a replacement before the graph is
// changed: conditions, op definitions, kernels, computed values and cycles.
class PatternPlan {
 public:
  using Attrs = std::vector<std::pair<absl::string_view, absl::string_view>>;

  explicit PatternPlan(const PassContext& context) : context_(context) {}

  // Returns false if the rule does not apply: see mismatch().
  bool Prepare(const RuleData& rule, const PatternMatch& match) {
    num_nodes_ = num_sources_ = 0;
    constants_.clear();
    computed_.clear();
    const auto matched = internal::Access::Construct<Matched>(match, context_);
    for (const RuleData::Condition& condition : rule.conditions) {
      if (!condition.predicate(matched)) {
        return Fail(Reason::kCondition, condition.description);
      }
    }
    if (!PrepareSource(rule.replacement, matched, match)) return false;
    const auto& results = match.variant().results;
    bool has_results = false;
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].first < 0) continue;
      has_results = true;
      if (!PrepareSource(rule.result_replacements[i], matched, match)) {
        return false;
      }
    }
    return !has_results || CheckCycle(rule, match);
  }
  const Mismatch& mismatch() const { return mismatch_; }

  // Returns the names and serialized values of the new node's attributes.
  const Attrs& AttrsOf(const ReplacementTree& tree) const {
    return Find(tree)->attrs;
  }
  const Constant& ConstantOf(const ReplacementTree& tree) const {
    for (const auto& [made, constant] : constants_) {
      if (made == &tree) return constant;
    }
    return constants_.front().second;  // Not reached.
  }

 private:
  using Reason = Mismatch::Reason;

  // Greater than every Mismatch::progress of the matcher.
  static constexpr int kProgress = 1 << 24;

  // A new node of this match.
  struct NewNode {
    const ReplacementTree* tree;
    const NewOp* op;
    Attrs attrs;

    // Returns null data if there is no such attribute.
    absl::string_view Get(absl::string_view name) const {
      for (const auto& attr : attrs) {
        if (attr.first == name) return attr.second;
      }
      return {};
    }
  };
  // A node from which attributes are copied.
  struct Source {
    Node node;
    Attrs attrs;
  };

  bool Fail(Reason reason, std::string text) {
    mismatch_ = Mismatch();
    mismatch_.reason = reason;
    mismatch_.progress = kProgress;
    mismatch_.text = std::move(text);
    return false;
  }

  const NewNode* Find(const ReplacementTree& tree) const {
    for (size_t i = 0; i < num_nodes_; ++i) {
      if (nodes_[i].tree == &tree) return &nodes_[i];
    }
    return nullptr;
  }

  // Evaluates a tree, inputs first.
  bool PrepareSource(const ReplacementSource& source, const Matched& matched,
                     const PatternMatch& match) {
    const ReplacementTree& tree = *source.tree;
    if (tree.kind == ReplacementTree::Kind::kMatched) return true;
    if (tree.kind == ReplacementTree::Kind::kConst) {
      for (const auto& made : constants_) {
        if (made.first == &tree) return true;
      }
      absl::StatusOr<Constant> constant = tree.value(matched);
      if (!constant.ok()) {
        return Fail(Reason::kConstant,
                    std::string(constant.status().message()));
      }
      constants_.emplace_back(&tree, *std::move(constant));
      return true;
    }
    if (Find(tree) != nullptr) return true;
    for (const ReplacementSource& input : tree.inputs) {
      if (!PrepareSource(input, matched, match)) return false;
    }
    return PrepareNode(tree, matched, match);
  }
  bool PrepareNode(const ReplacementTree& tree, const Matched& matched,
                   const PatternMatch& match) {
    const NewOp& op = ops_.Get(tree, context_);
    if (!op.problem.empty()) return Fail(Reason::kOp, op.problem);
    if (num_nodes_ == nodes_.size()) nodes_.emplace_back();
    NewNode& node = nodes_[num_nodes_];
    node.tree = &tree;
    node.op = &op;
    node.attrs.clear();
    for (const NewAttr& attr : tree.attrs) {
      if (attr.if_known && op.signature->FindAttr(attr.name) == nullptr) {
        continue;
      }
      const absl::string_view value = ValueOf(attr, matched);
      if (value.data() != nullptr) node.attrs.emplace_back(attr.name, value);
    }
    if (!AddMissing(node, match)) return false;
    ++num_nodes_;
    return !tree.needs_kernel || CheckKernel(node, match.root());
  }

  // Returns null data if there is no attribute to copy.
  absl::string_view ValueOf(const NewAttr& attr, const Matched& matched) {
    if (attr.copy_from != nullptr) return FindCopy(attr, matched);
    if (attr.function == nullptr) return attr.value;
    return computed_.emplace_back(attr.function(matched));
  }
  absl::string_view FindCopy(const NewAttr& attr, const Matched& matched) {
    const Node from =
        internal::Access::Find(matched, PatternOutput{attr.copy_from, 0}).node;
    if (!from) return {};
    size_t i = 0;
    while (i < num_sources_ && sources_[i].node != from) ++i;
    if (i == num_sources_) AddSource(from);
    const std::string& name =
        attr.copy_name.empty() ? attr.name : attr.copy_name;
    for (const auto& [found, value] : sources_[i].attrs) {
      if (found == name) return value;
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
    internal::Access::state(node)->ForEachAttr(
        node.id(), [&](absl::string_view name, absl::string_view value) {
          source.attrs.emplace_back(name, value);
        });
  }

  // Adds the attributes that the rule does not set: those that follow from the
  // inputs, and the defaults of the op's definition.
  bool AddMissing(NewNode& node, const PatternMatch& match) {
    bool has_types = false;
    for (const NewOp::Missing& missing : node.op->missing) {
      const OpSignature::Attr& attr = *missing.attr;
      if (missing.may_be_copied && node.Get(attr.name).data() != nullptr) {
        continue;
      }
      if (missing.follows_from_inputs) {
        if (!has_types) CollectTypes(*node.tree, match);
        has_types = true;
        const OpSignature& signature = *node.op->signature;
        const auto get = [&](absl::string_view name) { return node.Get(name); };
        std::optional<std::string> value =
            InferAttr(signature, InputLayout(signature, types_.size(), get),
                      types_, attr.name);
        if (value.has_value()) {
          node.attrs.emplace_back(attr.name,
                                  computed_.emplace_back(*std::move(value)));
          continue;
        }
      }
      if (!attr.has_default) return FailWithout(node, missing);
      node.attrs.emplace_back(attr.name, attr.default_value);
    }
    return true;
  }
  bool FailWithout(const NewNode& node, const NewOp::Missing& missing) {
    return Fail(Reason::kOp,
                "this TensorFlow's " + node.tree->op + " requires attribute " +
                    missing.attr->name + ", which the rule does not set" +
                    (missing.follows_from_inputs
                         ? " and which does not follow from the inputs"
                         : ""));
  }
  // Collects the types of the inputs of a new node; 0 if unknown.
  void CollectTypes(const ReplacementTree& tree, const PatternMatch& match) {
    types_.clear();
    for (const ReplacementSource& input : tree.inputs) {
      if (input.tree->kind == ReplacementTree::Kind::kMatched) {
        match.ForEachValue(input.tree->matched, [&](const Output& value) {
          types_.push_back(FindType(value, context_).value_or(DataType(0)));
        });
      } else if (input.tree->kind == ReplacementTree::Kind::kConst) {
        types_.push_back(ConstantOf(*input.tree).dtype());
      } else {
        const NewNode& node = *Find(*input.tree);
        types_.push_back(
            FindOutputType(*node.op->signature, input.port,
                           [&](absl::string_view n) { return node.Get(n); })
                .value_or(DataType(0)));
      }
    }
  }

  bool CheckKernel(const NewNode& node, const Node& root) {
    if (root.device().empty()) {
      return Fail(Reason::kNoKernel,
                  Describe(root) +
                      " has no device yet, so its kernel cannot be determined");
    }
    std::vector<kernel_internal::TypeAttr> types;
    for (const auto& [name, value] : node.attrs) {
      const auto type = graph::AttrCodec<DataType>::Decode(value);
      if (type.has_value()) types.emplace_back(name, *type);
    }
    const std::string& op = node.tree->op;
    if (context_.HasKernel(op, types)) return true;
    std::string text = "no kernel is registered for " + op;
    const char* separator = " with ";
    for (const auto& [name, type] : types) {
      text += separator + std::string(name) + "=" + DataTypeName(type);
      separator = ", ";
    }
    return Fail(Reason::kNoKernel, text + " on " + context_.device_type());
  }

  // Checks that nothing that the new nodes need depends on a result.
  bool CheckCycle(const RuleData& rule, const PatternMatch& match) {
    dependency_.Clear();
    const auto& variant = match.variant();
    for (size_t i = 0; i < variant.slots.size(); ++i) {
      if (!variant.HasResult(static_cast<int>(i))) continue;
      for (const Use use : match.output(i).node.uses()) {
        const bool is_consumed = match.AnyOf(
            use.node, [&](size_t j) { return j == 0 || match.IsConsumed(j); });
        if (!is_consumed) dependency_.AddFrom(use.node);
      }
    }
    AddOperands(rule.replacement, match);
    for (const ReplacementSource& source : rule.result_replacements) {
      AddOperands(source, match);
    }
    for (size_t i = 0; i < match.size(); ++i) {
      if (i > 0 && !match.IsConsumed(i)) continue;
      for (const Node control : match.output(i).node.controls()) {
        const bool is_consumed = match.AnyOf(
            control, [&](size_t j) { return j == 0 || match.IsConsumed(j); });
        if (!is_consumed) dependency_.AddTo(control);
      }
    }
    if (!dependency_.Run()) return true;
    mismatch_ = Mismatch();
    mismatch_.reason = Reason::kCycle;
    mismatch_.progress = kProgress;
    mismatch_.node = dependency_.meeting();
    return false;
  }
  void AddOperands(const ReplacementSource& source, const PatternMatch& match) {
    if (source.tree->kind == ReplacementTree::Kind::kMatched) {
      match.ForEachValue(source.tree->matched, [&](const Output& value) {
        if (value.node) dependency_.AddTo(value.node);
      });
    }
    for (const ReplacementSource& input : source.tree->inputs) {
      AddOperands(input, match);
    }
  }

  const PassContext& context_;
  NewOps ops_;
  Mismatch mismatch_;
  std::vector<Source> sources_;  // The first num_sources_ are this match's.
  size_t num_sources_ = 0;
  std::vector<NewNode> nodes_;  // The first num_nodes_ are this match's.
  size_t num_nodes_ = 0;
  std::list<std::string> computed_;
  std::vector<std::pair<const ReplacementTree*, Constant>> constants_;
  std::vector<DataType> types_;
  DependencySearch dependency_;
};

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_PLAN_H_
