// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_RULES_H_
#define TFPLUG_PATTERNS_RULES_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/patterns/internal/editor.h"
#include "tfplug/patterns/internal/matcher.h"
#include "tfplug/patterns/internal/run.h"
#include "tfplug/patterns/internal/table.h"
#include "tfplug/patterns/rule.h"

namespace tfplug {

// Several rules that are applied together. Make them once (a function's
// static): preparing them costs more than to run them. Const, and then safe to
// use from several threads at once, for a graph each.
//
// A match is replaced only if that computes the same as before for everyone
// else in the graph:
//
//  * a node that goes is used by nothing outside the match, neither its outputs
//    nor by a control edge; is not to be preserved; is on the root's device; is
//    not an operand of the match at the same time;
//  * no output of the root but the matched one is used;
//  * what a node that goes waited for, the new node waits for.
//
// An author may relax the first for single nodes: MayHaveOtherUses().
class Rules {
 public:
  explicit Rules(std::vector<Rule> rules) : table_(std::move(rules)) {}

  // Replaces all that match, until nothing does: rules of higher priority
  // first, bigger patterns before smaller ones. Returns the number of
  // replacements. INVALID_ARGUMENT names a rule that cannot be used;
  // INTERNAL names one that never comes to rest, and a node.
  absl::StatusOr<int64_t> Run(Graph& graph, const PassContext& context) const;

  // Why each rule that could have `node` as its root does not apply to it, or
  // that it does: a line for each. Of a pattern's several ways, the one that
  // came furthest. Run Explain on the graph before the rules, or after them.
  std::string Explain(const Node& node, const PassContext& context) const;
  // The same of the rule `name` alone: one line; says so if there is none.
  std::string Explain(absl::string_view name, const Node& node,
                      const PassContext& context) const;

 private:
  std::string ExplainRule(size_t rule, const Node& node,
                          const PassContext& context) const;

  internal::PatternTable table_;
};

inline absl::StatusOr<int64_t> Rules::Run(Graph& graph,
                                          const PassContext& context) const {
  if (!table_.status().ok()) return table_.status();
  return internal::PatternRun(table_, graph, context).Run();
}

inline std::string Rules::Explain(const Node& node,
                                  const PassContext& context) const {
  std::string lines;
  for (size_t rule = 0; rule < table_.rules().size(); ++rule) {
    if (!table_.HasRoot(rule, node.op())) continue;
    lines += ExplainRule(rule, node, context) + "\n";
  }
  if (!lines.empty()) return lines;
  return "no rule has a " + std::string(node.op()) + " as its root\n";
}

inline std::string Rules::Explain(absl::string_view name, const Node& node,
                                  const PassContext& context) const {
  for (size_t rule = 0; rule < table_.rules().size(); ++rule) {
    if (table_.rules()[rule].name() == name) {
      return ExplainRule(rule, node, context);
    }
  }
  return "there is no rule '" + std::string(name) + "'";
}

inline std::string Rules::ExplainRule(size_t rule, const Node& node,
                                      const PassContext& context) const {
  const std::string start = table_.rules()[rule].name() + ": ";
  if (!table_.status().ok()) return start + table_.status().ToString();
  std::vector<uint32_t> numbers;
  table_.FindOps(
      [&](const std::string& op) {
        return internal::Access::state(node)->op_table().Find(op);
      },
      numbers);
  internal::PatternMatcher matcher(context, numbers);
  internal::Mismatch best;
  best.progress = -1;
  for (const internal::PatternTable::Entry& entry : table_.entries()) {
    if (entry.rule != rule) continue;
    internal::Mismatch mismatch;
    if (!matcher.Match(entry.variant, node)) {
      mismatch = matcher.mismatch();
    } else if (internal::PatternEditor::Check(table_.rules()[rule],
                                              entry.variant, matcher.bound(),
                                              context, mismatch)) {
      return start + "it matches";
    }
    if (mismatch.progress > best.progress) best = mismatch;
  }
  return start + internal::InWords(best);
}

// A pass that is nothing but rules: derive from it, with a constructor without
// arguments that names them.
//
//   class Fusion : public tfplug::RulesPass {
//    public:
//     Fusion() : RulesPass(FusionRules()) {}
//   };
class RulesPass : public GraphPass {
 public:
  // `rules` must outlive the pass.
  explicit RulesPass(const Rules& rules) : rules_(rules) {}

  absl::Status Run(Graph& graph, const PassContext& context) override {
    return rules_.Run(graph, context).status();
  }

 private:
  const Rules& rules_;
};

}  // namespace tfplug

#endif  // TFPLUG_PATTERNS_RULES_H_
