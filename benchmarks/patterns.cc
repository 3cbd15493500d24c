// SPDX-License-Identifier: Apache-2.0
// Measures pattern matching under callgrind:
//
//   patterns GRAPH WORKLOAD COUNT
//
// reads a GraphDef and runs COUNT rules over it. WORKLOAD is "absent" (rules
// for ops that the graph lacks), "never" (rules for ops of the graph in
// positions that never match), "fuse" (a rule that fuses convolutions with bias
// and activation, then those of "never"), or "hand" (a hand-written loop that
// finds the matches of "fuse" and replaces nothing). Callgrind counts only the
// function Measure.
#include <tfplug/ops/all.h>
#include <tfplug/patterns/rules.h>
#include <tfplug/testing.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "stub_tensorflow.h"

namespace {

using tfplug::Graph;
using tfplug::patterns::Any;
using tfplug::patterns::Match;
using tfplug::patterns::New;
using tfplug::patterns::Pattern;
using tfplug::patterns::Rule;
using tfplug::patterns::Rules;
namespace ops = tfplug::ops;

Rule Fuse() {
  using Fused = ops::InternalFusedConv2D;
  const Pattern x = Any(), w = Any(), b = Any();
  const auto conv =
      Match<ops::Conv2D>(x, w).Where(ops::Conv2D::data_format, "NHWC");
  const auto bias = Match<ops::BiasAdd, ops::AddV2>(conv, b);
  const auto root =
      tfplug::patterns::Optional(Match<ops::Relu, ops::Relu6>(bias));
  return Rule("fuse", root)
      .ReplaceBy(New<Fused>(x, w, b)
                     .Copy(conv, Fused::T_attr)
                     .Copy(conv, Fused::strides)
                     .Copy(conv, Fused::padding)
                     .Copy(conv, Fused::data_format)
                     .Set(Fused::num_args, 1)
                     .Set(Fused::fused_ops,
                          std::vector<std::string>{"BiasAdd", "Relu"}));
}

// Appends rules over pairs of `names`, as ops of roots and of their inputs, up
// to `count` rules.
void AddPairs(const std::vector<std::string>& names, size_t count,
              std::vector<Rule>& rules) {
  const Pattern x = Any();
  for (size_t i = 0; rules.size() < count; ++i) {
    const std::string& inner = names[i % names.size()];
    const std::string& root = names[(i / names.size() + i) % names.size()];
    // No node has that many inputs, but the root is checked first.
    const auto never = Match(inner, x, x, x, x, x, x, x, x, x);
    rules.push_back(Rule("pair " + std::to_string(i),
                         Match(root, Match(inner, never), never).Named(root))
                        .ReplaceBy(x));
  }
}

std::vector<Rule> MakeRules(const std::string& workload, size_t count) {
  std::vector<Rule> rules;
  if (workload == "absent") {
    AddPairs({"Selu", "Erfc", "Digamma", "Lgamma"}, count, rules);
    return rules;
  }
  if (workload == "fuse") rules.push_back(Fuse());
  AddPairs({"Mul", "AddV2", "Sub", "BiasAdd", "MatMul", "Sum", "Conv2D", "Relu",
            "Reshape", "ReluGrad"},
           count, rules);
  return rules;
}

// Counts the matches of Fuse() with a hand-written loop.
int64_t FindByHand(Graph& graph) {
  int64_t count = 0;
  for (const tfplug::Node root : graph.nodes()) {
    tfplug::Node bias = root;
    if (root.op() == "Relu" || root.op() == "Relu6") {
      bias = root.input(0).node;
      if (!bias || bias.num_uses() != 1) continue;
    }
    if (bias.op() != "BiasAdd" && bias.op() != "AddV2") continue;
    const tfplug::Node conv = bias.input(0).node;
    count += conv && conv.op() == "Conv2D" && conv.num_uses() == 1 ? 1 : 0;
  }
  return count;
}

__attribute__((noinline)) int64_t Measure(const Rules* rules, Graph& graph,
                                          tfplug::PassContext& context) {
  if (rules == nullptr) return FindByHand(graph);
  return rules->Run(graph, context).value();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const std::string workload = argv[2];
  tfplug::testing::ScopedFakeTensorFlow fake;
  InstallStubTensorFlow();
  auto graph = Graph::Parse(bytes);
  if (!graph.ok()) return 1;
  tfplug::PassContext context("CPU", "", nullptr);
  const Rules rules(
      MakeRules(workload, static_cast<size_t>(std::atoi(argv[3]))));
  const Rules* const used = workload == "hand" ? nullptr : &rules;
  // Resolves edges and uses, which is not part of the measurement.
  for (const tfplug::Node node : graph->nodes()) {
    if (node.num_inputs() < 0) return 1;
    if (node.uses().empty() != (node.num_uses() == 0)) return 1;
  }
  const auto nodes = static_cast<long long>(graph->num_nodes());
  const auto count = static_cast<long long>(Measure(used, *graph, context));
  std::printf("%lld %lld\n", nodes, count);
}
