// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_TABLE_H_
#define TFPLUG_PATTERNS_INTERNAL_TABLE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/environment.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/internal/op_table.h"
#include "tfplug/patterns/internal/replacement.h"
#include "tfplug/patterns/internal/variant.h"
#include "tfplug/patterns/internal/variant_builder.h"

#pragma GCC visibility push(hidden)

namespace tfplug::patterns_internal {

inline absl::Status AnnotateRule(const std::string& name, const Node& node,
                                 const absl::Status& status) {
  return absl::Status(status.code(), "rule '" + name + "', node '" +
                                         std::string(node.name()) +
                                         "': " + std::string(status.message()));
}

// Prepared rules: all variants of their patterns, by the op of the root, in the
// order in which they are tried. Ops are represented by indices in this table,
// in which the ops of roots come first.
class PatternTable {
 public:
  struct Entry {
    size_t rule;
    PatternVariant variant;
    // Whether a replacement can lead to another match.
    bool may_enable_matches;
    // The ops that the root's first two inputs may have, as one bit per op;
    // empty: any op. They are checked before the rest of the pattern.
    std::array<std::vector<uint64_t>, 2> input_ops;
  };
  // The entries of one rank (priority and number of nodes) whose root may have
  // `op`.
  struct Root {
    uint32_t op;
    std::vector<const Entry*> entries;
  };

  explicit PatternTable(std::vector<RuleData> rules)
      : rules_(std::move(rules)) {
    for (size_t i = 0; i < rules_.size(); ++i) Prepare(i);
    std::stable_sort(entries_.begin(), entries_.end(),
                     [this](const Entry& a, const Entry& b) {
                       return RankOf(a) > RankOf(b);
                     });
    for (Entry& entry : entries_) AddOps(entry, 0, 1);
    num_root_ops_ = ops_.size();
    for (Entry& entry : entries_) {
      AddOps(entry, 1, entry.variant.slots.size());
      AddOpsOfBodies(entry.variant);
    }
    for (Entry& entry : entries_) AddToRoots(entry);
  }
  // Is not copyable: roots hold pointers to entries.
  PatternTable(const PatternTable&) = delete;
  PatternTable& operator=(const PatternTable&) = delete;

  // Returns INVALID_ARGUMENT if a rule is malformed.
  const absl::Status& status() const { return status_; }
  const std::vector<RuleData>& rules() const { return rules_; }
  const RuleData& rule(const Entry& entry) const { return rules_[entry.rule]; }
  const std::vector<Entry>& entries() const { return entries_; }
  // Returns the roots, the highest rank first.
  const std::vector<Root>& roots() const { return roots_; }
  size_t num_root_ops() const { return num_root_ops_; }

  bool HasRoot(size_t rule, absl::string_view op) const {
    for (const Entry& entry : entries_) {
      const auto& ops = entry.variant.slots[0]->ops;
      if (entry.rule == rule &&
          std::find(ops.begin(), ops.end(), op) != ops.end()) {
        return true;
      }
    }
    return false;
  }

  // Logs, with TFPLUG_LOG_FUSION=1, the ops of patterns that TensorFlow does not
  // know: names that are misspelt, or that this release does not have.
  void LogUnknownOps(const PassContext& context) const {
    if (!internal::IsFusionLogged()) return;
    for (const std::string& op : ops_) {
      const auto signature = context.functions().GetSignature(op);
      if (signature.ok()) continue;
      std::fprintf(stderr, "tfplug: no rule finds %s: %s\n", op.c_str(),
                   std::string(signature.status().message()).c_str());
    }
  }

  // Stores find(op) for each op. find() returns the op's id in a graph, or
  // kAbsent.
  static constexpr uint32_t kAbsent = graph_internal::OpTable::kNone;
  template <class F>
  void FindOps(const F& find, std::vector<uint32_t>& graph_ops) const {
    graph_ops.clear();
    for (const std::string& op : ops_) graph_ops.push_back(find(op));
  }
  // Finds the entries of `root` whose ops are all in the graph. Returns false
  // if there are none.
  static bool FindPossible(const Root& root,
                           const std::vector<uint32_t>& graph_ops,
                           std::vector<const Entry*>& possible) {
    possible.clear();
    for (const Entry* entry : root.entries) {
      bool all = true;
      for (const std::vector<uint32_t>& ops : entry->variant.ops) {
        bool any = ops.empty();  // An Any(), not a node.
        for (uint32_t op : ops) any = any || graph_ops[op] != kAbsent;
        all = all && any;
      }
      if (all) possible.push_back(entry);
    }
    return !possible.empty();
  }

 private:
  std::pair<int, int> RankOf(const Entry& entry) const {
    return {rules_[entry.rule].priority, entry.variant.num_nodes};
  }

  void Prepare(size_t rule) {
    std::vector<PatternVariant> variants;
    absl::Status status = VariantBuilder::Build(rules_[rule].root,
                                                rules_[rule].results, variants);
    if (status.ok() && rules_[rule].replacement.tree == nullptr) {
      status = absl::InvalidArgumentError(
          "it has no replacement; call ReplaceBy(...)");
    }
    if (!status.ok()) {
      if (status_.ok()) {
        status_ =
            absl::InvalidArgumentError("rule '" + rules_[rule].name +
                                       "': " + std::string(status.message()));
      }
      return;
    }
    for (PatternVariant& variant : variants) {
      entries_.push_back({rule, std::move(variant), true, {}});
    }
  }
  void AddOps(Entry& entry, size_t begin, size_t end) {
    for (size_t slot = begin; slot < end; ++slot) {
      std::vector<uint32_t>& ops = entry.variant.ops.emplace_back();
      for (const std::string& op : entry.variant.slots[slot]->ops) {
        ops.push_back(AddOp(op));
      }
    }
  }
  void AddOpsOfBodies(PatternVariant& variant) {
    for (const PatternStep& step : variant.steps) {
      if (step.bodies == nullptr) continue;
      for (PatternVariant& body : *step.bodies) {
        for (const PatternElement* element : body.slots) {
          std::vector<uint32_t>& ops = body.ops.emplace_back();
          for (const std::string& op : element->ops) ops.push_back(AddOp(op));
        }
      }
    }
  }
  // Returns the index of `op`, and adds it if necessary.
  uint32_t AddOp(const std::string& op) {
    const auto found = std::find(ops_.begin(), ops_.end(), op);
    const auto index = static_cast<uint32_t>(found - ops_.begin());
    if (found == ops_.end()) ops_.push_back(op);
    return index;
  }
  // Returns whether a replacement can enable another match. A matched value
  // that replaces the root becomes an input of the root's users; a new node can
  // match only if a pattern contains its op.
  bool MayEnableMatches(const RuleData& rule) const {
    bool may = MayEnableMatches(*rule.replacement.tree);
    for (const ReplacementSource& result : rule.result_replacements) {
      may = may || MayEnableMatches(*result.tree);
    }
    return may;
  }
  bool MayEnableMatches(const ReplacementTree& tree) const {
    if (tree.kind == ReplacementTree::Kind::kMatched) return true;
    if (std::find(ops_.begin(), ops_.end(), tree.op) != ops_.end()) return true;
    for (const ReplacementSource& input : tree.inputs) {
      if (input.tree->kind != ReplacementTree::Kind::kMatched &&
          MayEnableMatches(*input.tree)) {
        return true;
      }
    }
    return false;
  }

  void AddToRoots(Entry& entry) {
    entry.may_enable_matches = MayEnableMatches(rules_[entry.rule]);
    for (const PatternStep& step : entry.variant.steps) {
      const auto input = static_cast<size_t>(step.input);
      if (step.kind != PatternStep::Kind::kInput || step.from_end ||
          step.parent != 0 || input >= entry.input_ops.size()) {
        continue;
      }
      std::vector<uint64_t>& bits = entry.input_ops[input];
      for (uint32_t op : entry.variant.ops[static_cast<size_t>(step.slot)]) {
        bits.resize(ops_.size() / 64 + 1);
        bits[op / 64] |= uint64_t{1} << op % 64;
      }
    }
    for (uint32_t op : entry.variant.ops[0]) {
      Root* root = nullptr;
      for (size_t r = roots_.size(); r-- > 0;) {
        if (RankOf(*roots_[r].entries[0]) != RankOf(entry)) break;
        if (roots_[r].op == op) root = &roots_[r];
      }
      if (root == nullptr) {
        roots_.push_back({op, {}});
        root = &roots_.back();
      }
      root->entries.push_back(&entry);
    }
  }

  std::vector<RuleData> rules_;
  std::vector<Entry> entries_;
  std::vector<Root> roots_;
  std::vector<std::string> ops_;
  size_t num_root_ops_ = 0;
  absl::Status status_;
};

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_TABLE_H_
