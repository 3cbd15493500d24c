// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_RUN_H_
#define TFPLUG_PATTERNS_INTERNAL_RUN_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/patterns/internal/editor.h"
#include "tfplug/patterns/internal/matcher.h"
#include "tfplug/patterns/internal/table.h"

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
          return graph_.has_op(op) ? graph_.OpId(op) : PatternTable::kAbsent;
        },
        numbers_);
    bool found = false;
    for (const PatternTable::Root& root : table_.roots()) {
      if (!PatternTable::FindPossible(root, numbers_, possible_)) continue;
      if (!found) FindNodes();
      found = true;
      for (uint32_t id : nodes_[root.op]) {
        // It may have become something else meanwhile, or be gone.
        if (core_->op(id) != numbers_[root.op]) continue;
        absl::Status status = Visit(Access::Construct<Node>(core_, id));
        if (!status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  // The nodes of each root's op, in one pass over the graph.
  void FindNodes() {
    const Node first = *graph_.nodes().begin();
    core_ = Access::state(first);
    op_of_.assign(op_of_.size(), PatternTable::kAbsent);
    nodes_.resize(table_.num_root_ops());
    for (std::vector<uint32_t>& nodes : nodes_) nodes.clear();
    for (size_t op = 0; op < numbers_.size(); ++op) {
      const uint32_t number = numbers_[op];
      if (number == PatternTable::kAbsent) continue;
      if (op_of_.size() <= number) {
        op_of_.resize(number + 1, PatternTable::kAbsent);
      }
      op_of_[number] = static_cast<uint32_t>(op);
    }
    const uint32_t* const ops = core_->ops().data();
    for (uint32_t id = 0, size = core_->size(); id < size; ++id) {
      const uint32_t op = OpOf(ops[id]);
      if (op < nodes_.size()) nodes_[op].push_back(id);
    }
  }

  // The number that the table has for a number of the graph; removed nodes have
  // one that is above all.
  uint32_t OpOf(uint32_t number) const {
    return number < op_of_.size() ? op_of_[number] : PatternTable::kAbsent;
  }
  // The op of data input `i`; kAbsent if no pattern looks for it.
  uint32_t InputOp(const Node& node, int i) const {
    const Node input = node.input(i).node;
    return input ? OpOf(input.op_id()) : PatternTable::kAbsent;
  }
  static bool Has(const std::vector<uint64_t>& ops, uint32_t op) {
    return ops.empty() ||
           (op != PatternTable::kAbsent && (ops[op / 64] >> op % 64 & 1) != 0);
  }

  absl::Status Visit(const Node& node) {
    const uint32_t first = InputOp(node, 0);
    const uint32_t second = InputOp(node, 1);
    for (const Entry* entry : possible_) {
      if (!Has(entry->input_ops[0], first) ||
          !Has(entry->input_ops[1], second) ||
          !matcher_.Match(entry->variant, node)) {
        continue;
      }
      absl::Status status;
      if (Replace(*entry, node, status)) return status;
    }
    return absl::OkStatus();
  }

  // Whether there is no more to do at `node`.
  bool Replace(const Entry& entry, const Node& node, absl::Status& status) {
    const Rule& rule = table_.rule(entry);
    const absl::StatusOr<bool> replaced =
        editor_.Replace(rule, entry.variant, matcher_.bound());
    if (!replaced.ok()) {
      status = InRule(rule.name(), node, replaced.status());
      return true;
    }
    if (!*replaced) return false;
    again_ = again_ || entry.may_make_more;
    if (++count_ > limit_) {
      status = InRule(
          rule.name(), node,
          absl::InternalError("what it puts in is replaced again and again"));
    }
    return true;
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
  std::vector<uint32_t> op_of_;               // The other way round.
  std::vector<std::vector<uint32_t>> nodes_;  // By op of a root.
  GraphState* core_ = nullptr;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_PATTERNS_INTERNAL_RUN_H_
