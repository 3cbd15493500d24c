// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_RULES_H_
#define TFPLUG_PATTERNS_RULES_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/patterns/internal/editor.h"
#include "tfplug/patterns/internal/matcher.h"
#include "tfplug/patterns/internal/run.h"
#include "tfplug/patterns/internal/table.h"
#include "tfplug/patterns/rule.h"

#pragma GCC visibility push(hidden)

namespace tfplug::patterns {

// Several rules that are applied together. Build the object once, for example
// as a static variable: preparing rules costs more than running them. Several
// threads may use a const Rules at the same time, on different graphs.
//
// A match is replaced only if the rest of the graph still computes the same
// values:
//
//  * the removed nodes have no uses outside the match, neither of an output nor
//    by a control edge; TensorFlow does not require them to be preserved; they
//    are on the root's device; they are not operands of the match;
//  * no output of a replaced node is used except those that the rule replaces,
//    and no operand depends on one of them;
//  * the new node inherits the control inputs of the removed nodes.
//
// NodePattern::MayHaveOtherUses() relaxes the first condition for one node.
class Rules {
 public:
  explicit Rules(std::vector<Rule> rules) : table_(DataOf(std::move(rules))) {}

  // Replaces matches until there are none: rules of higher priority first, and
  // at equal priority, larger patterns before smaller ones. Returns the number
  // of replacements. INVALID_ARGUMENT, naming the rule, if one is malformed;
  // INTERNAL, naming the rule and a node, if one does not terminate.
  absl::StatusOr<int64_t> Run(Graph& graph, const PassContext& context) const {
    if (!table_.status().ok()) return table_.status();
    std::call_once(logged_, [&] { table_.LogUnknownOps(context); });
    return patterns_internal::PatternRun(table_, graph, context).Run();
  }

  // Returns a line for each rule whose root could be `node`: the reason why it
  // does not apply, or "matches". If a pattern has several variants, the line
  // describes the variant that matched furthest. May be called before or after
  // Run().
  std::string Explain(const Node& node, const PassContext& context) const;
  // Does the same as Explain above for the rule `name` only.
  std::string Explain(absl::string_view name, const Node& node,
                      const PassContext& context) const;

 private:
  static std::vector<patterns_internal::RuleData> DataOf(
      std::vector<Rule> rules) {
    std::vector<patterns_internal::RuleData> data;
    for (Rule& rule : rules) {
      data.push_back(std::move(internal::Access::data(rule)));
    }
    return data;
  }
  std::string ExplainRule(size_t rule, const Node& node,
                          const PassContext& context) const;

  patterns_internal::PatternTable table_;
  mutable std::once_flag logged_;
};

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
    if (table_.rules()[rule].name == name) {
      return ExplainRule(rule, node, context);
    }
  }
  return "there is no rule '" + std::string(name) + "'";
}

inline std::string Rules::ExplainRule(size_t rule, const Node& node,
                                      const PassContext& context) const {
  const patterns_internal::RuleData& data = table_.rules()[rule];
  const std::string start = data.name + ": ";
  if (!table_.status().ok()) return start + table_.status().ToString();
  std::vector<uint32_t> graph_ops;
  table_.FindOps(
      [&](const std::string& op) {
        return internal::Access::state(node)->op_table().Find(op);
      },
      graph_ops);
  patterns_internal::PatternMatcher matcher(context, graph_ops);
  patterns_internal::Mismatch best;
  best.progress = -1;
  for (const patterns_internal::PatternTable::Entry& entry : table_.entries()) {
    if (entry.rule != rule) continue;
    if (matcher.Match(data, entry.variant, node)) return start + "matches";
    const patterns_internal::Mismatch& mismatch = matcher.mismatch();
    if (mismatch.progress > best.progress) best = mismatch;
  }
  return start + patterns_internal::Describe(best);
}

// A pass that applies rules. They are built once per process:
//
//   std::vector<tfplug::patterns::Rule> MakeFusionRules() { ... }
//   class Fusion : public tfplug::patterns::RulesPass<MakeFusionRules> {};
template <std::vector<Rule> (*MakeRules)()>
class RulesPass : public GraphPass {
 public:
  absl::Status Run(Graph& graph, const PassContext& context) override {
    static const Rules rules(MakeRules());
    return rules.Run(graph, context).status();
  }
};

}  // namespace tfplug::patterns

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_RULES_H_
