// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_INTERNAL_PATTERN_RUN_H_
#define TFPLUG_INTERNAL_PATTERN_RUN_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/internal/pattern_editor.h"
#include "tfplug/internal/pattern_matcher.h"
#include "tfplug/internal/pattern_table.h"

namespace tfplug::internal {

// One run of rules over a graph. Memory is taken once for all visited nodes.
class PatternRun {
 public:
  PatternRun(const PatternTable& table, Graph& graph,
             const PassContext& context)
      : table_(table),
        graph_(graph),
        matcher_(context, numbers_),
        editor_(graph, context),
        // Rules that come to rest stay far below.
        limit_(4 * graph.num_nodes() + 1000) {}

  // The number of replacements.
  absl::StatusOr<int64_t> Run() {
    do {
      again_ = false;
      absl::Status status = Sweep();
      if (!status.ok()) return status;
    } while (again_);
    return count_;
  }

 private:
  using Entry = PatternTable::Entry;

  // Each root once, those of the highest rank first.
  absl::Status Sweep() {
    table_.FindOps(
        [this](const std::string& op) {
          return graph_.has_op(op) ? graph_.OpNumber(op)
                                   : PatternTable::kAbsent;
        },
        numbers_);
    bool found = false;
    for (const PatternTable::Root& root : table_.roots()) {
      if (!PatternTable::FindPossible(root, numbers_, possible_)) continue;
      if (!found) FindNodes();
      found = true;
      for (const Node& node : nodes_[root.op]) {
        // It may have become something else meanwhile, or be gone.
        if (node.op_number() != numbers_[root.op]) continue;
        absl::Status status = Visit(node);
        if (!status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  // The nodes of each op that patterns look for, in one pass over the graph.
  void FindNodes() {
    op_of_.assign(op_of_.size(), PatternTable::kAbsent);
    nodes_.resize(numbers_.size());
    for (size_t op = 0; op < numbers_.size(); ++op) {
      nodes_[op].clear();
      if (numbers_[op] == PatternTable::kAbsent) continue;
      if (op_of_.size() <= numbers_[op]) {
        op_of_.resize(numbers_[op] + 1, PatternTable::kAbsent);
      }
      op_of_[numbers_[op]] = static_cast<uint32_t>(op);
    }
    for (const Node node : graph_.nodes()) {
      const uint32_t number = node.op_number();
      if (number >= op_of_.size()) continue;
      const uint32_t op = op_of_[number];
      if (op != PatternTable::kAbsent) nodes_[op].push_back(node);
    }
  }

  absl::Status Visit(const Node& node) {
    for (const Entry* entry : possible_) {
      if (!matcher_.Match(entry->variant, node)) continue;
      const Rule& rule = table_.rule(*entry);
      absl::StatusOr<bool> replaced =
          editor_.Replace(rule, entry->variant, matcher_.bound());
      if (!replaced.ok()) return InRule(rule.name(), node, replaced.status());
      if (!*replaced) continue;
      again_ = again_ || entry->may_make_more;
      if (++count_ <= limit_) break;
      return InRule(
          rule.name(), node,
          absl::InternalError("what it puts in is replaced again and again"));
    }
    return absl::OkStatus();
  }

  const PatternTable& table_;
  Graph& graph_;
  std::vector<uint32_t> numbers_;  // By op: its number in the graph.
  PatternMatcher matcher_;
  PatternEditor editor_;
  const int64_t limit_;
  int64_t count_ = 0;
  bool again_ = false;
  std::vector<const Entry*> possible_;
  std::vector<uint32_t> op_of_;           // The other way round.
  std::vector<std::vector<Node>> nodes_;  // By op.
};

}  // namespace tfplug::internal

#endif  // TFPLUG_INTERNAL_PATTERN_RUN_H_
