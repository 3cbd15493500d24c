// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_RUN_H_
#define TFPLUG_PATTERNS_INTERNAL_RUN_H_

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/internal/environment.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/internal/graph_state.h"
#include "tfplug/patterns/internal/editor.h"
#include "tfplug/patterns/internal/matcher.h"
#include "tfplug/patterns/internal/table.h"

#pragma GCC visibility push(hidden)

namespace tfplug::patterns_internal {

// One run of rules over a graph. Visiting a node allocates nothing.
class PatternRun {
 public:
  PatternRun(const PatternTable& table, Graph& graph,
             const PassContext& context)
      : table_(table),
        graph_(graph),
        matcher_(context, graph_ops_),
        editor_(graph, context),
        // Far more than the number of replacements by rules that terminate.
        limit_(4 * graph.num_nodes() + 1000) {}

  // Returns the number of replacements.
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

  // Visits each possible root once, the highest rank first.
  absl::Status Sweep() {
    table_.FindOps(
        [this](const std::string& op) {
          return graph_.has_op(op) ? graph_.OpId(op) : PatternTable::kAbsent;
        },
        graph_ops_);
    bool found = false;
    for (const PatternTable::Root& root : table_.roots()) {
      if (!PatternTable::FindPossible(root, graph_ops_, possible_)) continue;
      if (!found) FindNodes();
      found = true;
      for (uint32_t id : nodes_[root.op]) {
        // An earlier replacement may have changed or removed the node.
        if (state_->op(id) != graph_ops_[root.op]) continue;
        absl::Status status =
            Visit(internal::Access::Construct<Node>(state_, id));
        if (!status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  // Lists the nodes with each root's op, in one pass over the graph.
  void FindNodes() {
    const Node first = *graph_.nodes().begin();
    state_ = internal::Access::state(first);
    table_ops_.assign(table_ops_.size(), PatternTable::kAbsent);
    nodes_.resize(table_.num_root_ops());
    for (std::vector<uint32_t>& nodes : nodes_) nodes.clear();
    for (size_t op = 0; op < graph_ops_.size(); ++op) {
      const uint32_t graph_op = graph_ops_[op];
      if (graph_op == PatternTable::kAbsent) continue;
      if (table_ops_.size() <= graph_op) {
        table_ops_.resize(graph_op + 1, PatternTable::kAbsent);
      }
      table_ops_[graph_op] = static_cast<uint32_t>(op);
    }
    const uint32_t* const ops = state_->ops().data();
    for (uint32_t id = 0, size = state_->size(); id < size; ++id) {
      const uint32_t op = TableOp(ops[id]);
      if (op < nodes_.size()) nodes_[op].push_back(id);
    }
  }

  // Converts the id of an op in the graph to its index in the table. kAbsent if
  // no pattern has the op, or for the op of a removed node, which is greater
  // than all ids.
  uint32_t TableOp(uint32_t graph_op) const {
    return graph_op < table_ops_.size() ? table_ops_[graph_op]
                                        : PatternTable::kAbsent;
  }
  // Returns the op of data input `i`; kAbsent if no pattern has it.
  uint32_t InputOp(const Node& node, int i) const {
    const Node input = node.input(i).node;
    return input ? TableOp(input.op_id()) : PatternTable::kAbsent;
  }
  static bool Contains(const std::vector<uint64_t>& ops, uint32_t op) {
    return ops.empty() ||
           (op != PatternTable::kAbsent && (ops[op / 64] >> op % 64 & 1) != 0);
  }

  absl::Status Visit(const Node& node) {
    const uint32_t first = InputOp(node, 0);
    const uint32_t second = InputOp(node, 1);
    for (const Entry* entry : possible_) {
      if (!Contains(entry->input_ops[0], first) ||
          !Contains(entry->input_ops[1], second) ||
          !matcher_.Match(table_.rule(*entry), entry->variant, node)) {
        continue;
      }
      return Replace(*entry, node);
    }
    return absl::OkStatus();
  }

  absl::Status Replace(const Entry& entry, const Node& node) {
    const RuleData& rule = table_.rule(entry);
    const std::string replaced = is_logged_ ? Describe(node) : "";
    absl::Status status =
        editor_.Replace(rule, matcher_.match(), matcher_.plan());
    if (is_logged_ && status.ok()) Log(rule, replaced);
    again_ = again_ || entry.may_enable_matches;
    if (status.ok() && ++count_ > limit_) {
      status = absl::InternalError(
          "the rules keep replacing their own results: remove a rule that "
          "undoes another");
    }
    return status.ok() ? status : AnnotateRule(rule.name, node, status);
  }

  static std::string Describe(const Node& node) {
    return "'" + std::string(node.name()) + "' (" + std::string(node.op()) +
           ")";
  }
  static void Log(const RuleData& rule, const std::string& replaced) {
    const ReplacementTree& tree = *rule.replacement.tree;
    const std::string by =
        tree.op.empty() ? "a value that it matched" : tree.op;
    std::fprintf(stderr, "tfplug: rule '%s' replaced %s by %s\n",
                 rule.name.c_str(), replaced.c_str(), by.c_str());
  }

  const bool is_logged_ = internal::IsFusionLogged();
  const PatternTable& table_;
  Graph& graph_;
  std::vector<uint32_t> graph_ops_;  // By op of the table.
  PatternMatcher matcher_;
  PatternEditor editor_;
  const int64_t limit_;
  int64_t count_ = 0;
  bool again_ = false;
  std::vector<const Entry*> possible_;
  std::vector<uint32_t> table_ops_;           // By op of the graph.
  std::vector<std::vector<uint32_t>> nodes_;  // By op of a root.
  graph_internal::GraphState* state_ = nullptr;
};

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_RUN_H_
