// SPDX-License-Identifier: Apache-2.0
// Runs the job "fuse" of graph_jobs.h as rules, as a hand-written loop, and
// over protobuf messages. rules.py builds and runs it.
//
//   rules GRAPH ROUNDS          prints one line of JSON: the processor time of
//                               each implementation in each round, and the
//                               number of fusions
//   rules count GRAPH RULES     runs the job twice; callgrind counts the second
//                               run
//
// GRAPH is a file or synthetic:NODES. Besides the rules that fuse, other rules
// look for ops of the graph in positions that never match.
#include <tfplug/ops/all.h>
#include <tfplug/patterns/rules.h>
#include <tfplug/testing.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "graph_jobs.h"
#include "processor_time.h"
#include "stub_tensorflow.h"

namespace {

namespace ops = tfplug::ops;
using tfplug::patterns::Any;
using tfplug::patterns::Match;
using tfplug::patterns::Matched;
using tfplug::patterns::New;
using tfplug::patterns::Pattern;
using tfplug::patterns::Rule;

std::function<std::vector<std::string>(const Matched&)> FusedOps(
    const Pattern& root) {
  return [root](const Matched& m) {
    std::vector<std::string> fused = {"BiasAdd"};
    const absl::string_view op = m.node(root).op();
    if (op != "BiasAdd" && op != "AddV2") fused.emplace_back(op);
    return fused;
  };
}

template <class Product>
Pattern Activation(const Product& product, const Pattern& b) {
  const auto bias = Match<ops::BiasAdd, ops::AddV2>(product, b);
  return tfplug::patterns::Optional(
      Match<ops::Relu, ops::Relu6, ops::Tanh, ops::Sigmoid>(bias));
}

Rule FuseConvolution() {
  using Fused = ops::InternalFusedConv2D;
  const Pattern x = Any(), w = Any(), b = Any();
  const auto product = Match<ops::Conv2D>(x, w);
  const Pattern root = Activation(product, b);
  return Rule("convolution", root)
      .ReplaceBy(New<Fused>(x, w, b)
                     .Copy(product, Fused::T_attr)
                     .Copy(product, Fused::strides)
                     .Copy(product, Fused::padding)
                     .Copy(product, Fused::data_format)
                     .Set(Fused::fused_ops, FusedOps(root))
                     .Set(Fused::num_args, 1)
                     .Set(Fused::epsilon, 0.0f));
}

Rule FuseProduct() {
  using Fused = ops::InternalFusedMatMul;
  const Pattern x = Any(), w = Any(), b = Any();
  const auto product = Match<ops::MatMul, ops::BatchMatMulV2,
                             ops::DepthwiseConv2dNative, ops::Mul>(x, w);
  const Pattern root = Activation(product, b);
  return Rule("product", root)
      .ReplaceBy(New<Fused>(x, w, b)
                     .Copy(product, Fused::T_attr)
                     .Copy(product, Fused::transpose_a)
                     .Copy(product, Fused::transpose_b)
                     .Set(Fused::fused_ops, FusedOps(root))
                     .Set(Fused::num_args, 1)
                     .Set(Fused::epsilon, 0.0f));
}

// Returns two rules that fuse and `others` that never match.
tfplug::patterns::Rules MakeRules(size_t others) {
  const std::vector<std::string> names = {
      "Mul",    "AddV2", "Sub",  "ReadVariableOp", "BiasAdd",
      "MatMul", "Sum",   "Relu", "Conv2D",         "Reshape"};
  std::vector<Rule> rules = {FuseConvolution(), FuseProduct()};
  const Pattern x = Any();
  for (size_t i = 0; i < others; ++i) {
    const std::string& inner = names[i % names.size()];
    const std::string& root = names[(i / names.size() + i) % names.size()];
    // No node has that many inputs, but the root is checked first.
    const auto never = Match(inner, x, x, x, x, x, x, x, x, x);
    rules.push_back(Rule("other " + std::to_string(i),
                         Match(root, Match(inner, never), never))
                        .ReplaceBy(x));
  }
  return tfplug::patterns::Rules(std::move(rules));
}

class RulesWorker : public Worker {
 public:
  explicit RulesWorker(size_t others) : rules_(MakeRules(others)) {}

  int Run(Job /*job*/, std::string_view bytes, Output& out) override {
    auto graph = tfplug::Graph::Parse(ToAbsl(bytes), &workspace_);
    const tfplug::PassContext context("SIM", ToAbsl(bytes), nullptr);
    const auto fused = rules_.Run(*graph, context);
    if (!fused.ok()) {
      std::fprintf(stderr, "%s\n", fused.status().ToString().c_str());
      std::exit(1);
    }
    graph->WriteTo(out.Reserve(graph->ByteSize()));
    return static_cast<int>(*fused);
  }

 private:
  const tfplug::patterns::Rules rules_;
  tfplug::GraphWorkspace workspace_;
};

// Reads a graph and moves its placed nodes to the device of the rules.
std::string ReadOnDevice(const std::string& name) {
  const std::string bytes = ReadGraph(name);
  auto graph = tfplug::Graph::Parse(bytes);
  if (!graph.ok()) {
    std::fprintf(stderr, "cannot read %s\n", name.c_str());
    std::exit(2);
  }
  for (tfplug::Node node : graph->nodes()) {
    if (!node.device().empty()) {
      node.SetDevice("/job:localhost/replica:0/task:0/device:SIM:0");
    }
  }
  return graph->ToString();
}

}  // namespace

extern "C" __attribute__((noinline)) int measured(Worker& worker,
                                                  const std::string& graph,
                                                  OutputBuffer& out) {
  return worker.Run(Job::kFuse, graph, out);
}

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() < 2) return 2;
  tfplug::testing::ScopedFakeTensorFlow fake;
  InstallStubTensorFlow();
  OutputBuffer out;
  if (args[0] == "count") {
    if (args.size() < 3) return 2;
    const std::string graph = ReadOnDevice(args[1]);
    const std::unique_ptr<Worker> worker =
        args[2] == "hand" ? MakeViewWorker()
                          : std::make_unique<RulesWorker>(static_cast<size_t>(
                                std::atoi(args[2].c_str())));
    worker->Run(Job::kFuse, graph, out);
    std::printf("%d\n", measured(*worker, graph, out));
    return 0;
  }
  const std::string graph = ReadOnDevice(args[0]);
  std::map<std::string, std::unique_ptr<Worker>> workers;
  workers["hand"] = MakeViewWorker();
  workers["messages"] = MakeMessageWorker(graph);
  for (const size_t others : {0, 1, 10, 100}) {
    workers["rules " + std::to_string(others)] =
        std::make_unique<RulesWorker>(others);
  }
  std::map<std::string, std::vector<double>> seconds;
  std::map<std::string, int> fused;
  std::vector<std::string> order;
  for (const auto& worker : workers) order.push_back(worker.first);
  std::minstd_rand random(1);
  for (int round = -1; round < std::atoi(args[1].c_str()); ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::string& name : order) {
      Worker& worker = *workers[name];
      // Processes messages first, as TensorFlow does before it calls a pass, so
      // that the caches are in the same state.
      workers["messages"]->Run(Job::kFuse, graph, out);
      // Merges the strings that messages have freed. Otherwise, the next large
      // allocation does so, which may take as long as the pass.
      void* volatile const large = std::malloc(1 << 16);
      std::free(large);
      const double took =
          Seconds([&] { fused[name] = measured(worker, graph, out); });
      if (round >= 0) seconds[name].push_back(took);
    }
  }
  const char* separator = "{";
  for (const auto& [name, values] : seconds) {
    std::printf("%s\"%s\": {\"fused\": %d, \"seconds\": ", separator,
                name.c_str(), fused[name]);
    PrintSeconds(values);
    std::printf("}");
    separator = ", ";
  }
  std::printf("}\n");
}
