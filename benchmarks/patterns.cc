// SPDX-License-Identifier: Apache-2.0
// What it costs to look for patterns, for callgrind:
//
//   patterns GRAPH WHAT COUNT
//
// reads a GraphDef and lets COUNT rules run over it twice. WHAT is what the
// rules look for: "absent" (ops that the graph has not), "never" (ops that it
// has, in a place where they never are), "fuse" (convolutions, biases and
// activations, which are replaced, and then the same as "never"), or "hand":
// the pattern of "fuse" as a loop written by hand, which replaces nothing.
// Instructions are counted in Measure alone.
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

using tfplug::Any;
using tfplug::Graph;
using tfplug::Match;
using tfplug::New;
using tfplug::Pattern;
using tfplug::Rule;
using tfplug::Rules;
namespace ops = tfplug::ops;

Rule Fuse() {
  using Fused = ops::InternalFusedConv2D;
  const Pattern x = Any(), w = Any(), b = Any();
  const auto conv =
      Match<ops::Conv2D>(x, w).Where(ops::Conv2D::data_format, "NHWC");
  const auto bias = Match<ops::BiasAdd, ops::AddV2>(conv, b);
  const auto root = tfplug::Optional(Match<ops::Relu, ops::Relu6>(bias));
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

// `count` rules over pairs of `names`, as ops of roots and of their inputs.
void AddPairs(const std::vector<std::string>& names, size_t count,
              std::vector<Rule>& rules) {
  const Pattern x = Any();
  for (size_t i = 0; rules.size() < count; ++i) {
    const std::string& inner = names[i % names.size()];
    const std::string& root = names[(i / names.size() + i) % names.size()];
    // That many inputs nothing has, but the root's are looked at first.
    const auto never = Match(inner, x, x, x, x, x, x, x, x, x);
    rules.push_back(Rule("pair " + std::to_string(i),
                         Match(root, Match(inner, never), never).Named(root))
                        .ReplaceBy(x));
  }
}

std::vector<Rule> MakeRules(const std::string& what, size_t count) {
  std::vector<Rule> rules;
  if (what == "absent") {
    AddPairs({"Selu", "Erfc", "Digamma", "Lgamma"}, count, rules);
    return rules;
  }
  if (what == "fuse") rules.push_back(Fuse());
  AddPairs({"Mul", "AddV2", "Sub", "BiasAdd", "MatMul", "Sum", "Conv2D", "Relu",
            "Reshape", "ReluGrad"},
           count, rules);
  return rules;
}

// The same as Fuse() finds, by hand.
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
  const std::string what = argv[2];
  tfplug::testing::ScopedFakeTensorFlow core;
  PretendToBeCore();
  auto graph = Graph::Parse(bytes);
  if (!graph.ok()) return 1;
  tfplug::PassContext context("CPU", "", nullptr);
  const Rules rules(MakeRules(what, static_cast<size_t>(std::atoi(argv[3]))));
  const Rules* const used = what == "hand" ? nullptr : &rules;
  // Edges and uses are found at the first question: not what is measured here.
  for (const tfplug::Node node : graph->nodes()) {
    if (node.num_inputs() < 0 || node.num_uses() < 0) return 1;
  }
  const auto nodes = static_cast<long long>(graph->num_nodes());
  const auto count = static_cast<long long>(Measure(used, *graph, context));
  std::printf("%lld %lld\n", nodes, count);
}
