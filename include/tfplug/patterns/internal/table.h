// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_TABLE_H_
#define TFPLUG_PATTERNS_INTERNAL_TABLE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/graph.h"
#include "tfplug/patterns/internal/variant.h"
#include "tfplug/patterns/rule.h"

// Rules, prepared: all variants of their patterns by the op of the root, in the
// order in which they are to be tried.
namespace tfplug::internal {

inline absl::Status InRule(const std::string& name, const Node& node,
                           const absl::Status& status) {
  return absl::Status(status.code(), "rule '" + name + "', node '" +
                                         std::string(node.name()) +
                                         "': " + std::string(status.message()));
}

class PatternTable {
 public:
  struct Entry {
    size_t rule;
    PatternVariant variant;
    // Whether what replaces it can be part of a match again.
    bool may_make_more;
    // The ops that the root's first two inputs may be of, as a bit for each op;
    // empty: any. Looked at before all else.
    std::array<std::vector<uint64_t>, 2> input_ops;
  };
  // The entries of one rank that begin at one op.
  struct Root {
    uint32_t op;  // As variants count them.
    std::vector<const Entry*> entries;
  };

  explicit PatternTable(std::vector<Rule> rules) : rules_(std::move(rules)) {
    for (size_t i = 0; i < rules_.size(); ++i) Prepare(i);
    std::stable_sort(entries_.begin(), entries_.end(),
                     [this](const Entry& a, const Entry& b) {
                       return RankOf(a) > RankOf(b);
                     });
    // Ops of roots have the first numbers.
    for (Entry& entry : entries_) NumberOps(entry, 0, 1);
    num_root_ops_ = ops_.size();
    for (Entry& entry : entries_) {
      NumberOps(entry, 1, entry.variant.slots.size());
    }
    for (Entry& entry : entries_) AddToRoots(entry);
  }
  // Entries are pointed at.
  PatternTable(const PatternTable&) = delete;
  PatternTable& operator=(const PatternTable&) = delete;

  // What is wrong with a rule.
  const absl::Status& status() const { return status_; }
  const std::vector<Rule>& rules() const { return rules_; }
  const Rule& rule(const Entry& entry) const { return rules_[entry.rule]; }
  const std::vector<Entry>& entries() const { return entries_; }
  // Of the highest rank first.
  const std::vector<Root>& roots() const { return roots_; }
  size_t num_ops() const { return ops_.size(); }
  // The ops below this number are those of roots.
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

  // By op, as variants count them: its number in this graph, or kAbsent.
  // find(op) gives it.
  static constexpr uint32_t kAbsent = OpTable::kNone;
  template <class F>
  void FindOps(const F& find, std::vector<uint32_t>& numbers) const {
    numbers.clear();
    for (const std::string& op : ops_) numbers.push_back(find(op));
  }
  // Those entries of `root` whose ops are all there. False if there are none.
  static bool FindPossible(const Root& root,
                           const std::vector<uint32_t>& numbers,
                           std::vector<const Entry*>& possible) {
    possible.clear();
    for (const Entry* entry : root.entries) {
      bool all = true;
      for (const std::vector<uint32_t>& ops : entry->variant.ops) {
        bool any = ops.empty();  // A value, not a node.
        for (uint32_t op : ops) any = any || numbers[op] != kAbsent;
        all = all && any;
      }
      if (all) possible.push_back(entry);
    }
    return !possible.empty();
  }

 private:
  std::pair<int, int> RankOf(const Entry& entry) const {
    return {rules_[entry.rule].priority(), entry.variant.num_nodes};
  }

  void Prepare(size_t rule) {
    std::vector<PatternVariant> variants;
    absl::Status status = VariantBuilder::Build(rules_[rule].root(), variants);
    if (status.ok() && rules_[rule].replacement() == nullptr) {
      status = absl::InvalidArgumentError(
          "it has no replacement: say ReplaceBy(...)");
    }
    if (!status.ok()) {
      if (status_.ok()) {
        status_ =
            absl::InvalidArgumentError("rule '" + rules_[rule].name() +
                                       "': " + std::string(status.message()));
      }
      return;
    }
    for (PatternVariant& variant : variants) {
      entries_.push_back({rule, std::move(variant), true, {}});
    }
  }
  void NumberOps(Entry& entry, size_t begin, size_t end) {
    for (size_t slot = begin; slot < end; ++slot) {
      std::vector<uint32_t>& ops = entry.variant.ops.emplace_back();
      for (const std::string& op : entry.variant.slots[slot]->ops) {
        ops.push_back(NumberOf(op));
      }
    }
  }
  uint32_t NumberOf(const std::string& op) {
    const auto found = std::find(ops_.begin(), ops_.end(), op);
    const auto number = static_cast<uint32_t>(found - ops_.begin());
    if (found == ops_.end()) ops_.push_back(op);
    return number;
  }
  // A matched value in the root's place brings its users closer to what it
  // comes from; a new op counts only if some pattern looks for it.
  bool MayMakeMore(const ReplacementTree& tree) const {
    if (tree.kind == ReplacementTree::Kind::kMatched) return true;
    if (std::find(ops_.begin(), ops_.end(), tree.op) != ops_.end()) return true;
    for (const auto& input : tree.inputs) {
      if (input->kind != ReplacementTree::Kind::kMatched &&
          MayMakeMore(*input)) {
        return true;
      }
    }
    return false;
  }

  void AddToRoots(Entry& entry) {
    entry.may_make_more = MayMakeMore(*rules_[entry.rule].replacement());
    for (const PatternStep& step : entry.variant.steps) {
      const auto input = static_cast<size_t>(step.input);
      if (step.parent != 0 || input >= entry.input_ops.size()) continue;
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

  std::vector<Rule> rules_;
  std::vector<Entry> entries_;
  std::vector<Root> roots_;
  std::vector<std::string> ops_;
  size_t num_root_ops_ = 0;
  absl::Status status_;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_PATTERNS_INTERNAL_TABLE_H_
