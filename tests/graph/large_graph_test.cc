// SPDX-License-Identifier: Apache-2.0
// Tests loops over the nodes of a graph that exceeds the processor's caches,
// for which the loop prefetches.
#include <doctest/doctest.h>
#include <tfplug/graph/graph.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/build_graph.h"

namespace tfplug::large_graph_test {
namespace {

constexpr int kChains = 400;
constexpr int kNodes = 5 * kChains;

// Returns a graph of kChains chains Relu(BiasAdd(MatMul(x, w), w)), in random
// order. Each node has an attribute of 4 KB.
std::string Shuffled() {
  std::vector<std::string> nodes;
  const auto add = [&](const std::string& name, const std::string& op,
                       const std::vector<std::string>& inputs) {
    std::string node = NodeDef(name, op, inputs), attr, value;
    internal::AppendField(node, 4, testing::DeviceName("SIM"));
    internal::AppendField(value, 2, std::string(4096, op[0]));
    internal::AppendField(attr, 1, "text");
    internal::AppendField(attr, 2, value);
    internal::AppendField(node, 5, attr);
    nodes.push_back(node);
  };
  for (int i = 0; i < kChains; ++i) {
    const std::string n = absl::StrCat(i);
    add("x" + n, "Const", {});
    add("w" + n, "Const", {});
    add("product" + n, "MatMul", {"x" + n, "w" + n});
    add("bias" + n, "BiasAdd", {"product" + n, "w" + n});
    add("relu" + n, "Relu", {"bias" + n});
  }
  std::shuffle(nodes.begin(), nodes.end(), std::mt19937(7));
  return InGraph(nodes);
}

TEST_CASE("An attribute is set on every node without reading an edge") {
  const std::string bytes = Shuffled();
  Graph graph = Graph::Parse(bytes).value();
  for (Node node : graph.nodes()) node.SetAttr("seen", true);
  const std::string after = graph.ToString();
  Graph result = Graph::Parse(after).value();
  int seen = 0;
  for (Node node : result.nodes()) {
    seen += node.GetAttr<bool>("seen").value();
    CHECK(node.GetAttr<std::string>("text").value() ==
          std::string(4096, node.op()[0]));
  }
  CHECK(seen == kNodes);
  CHECK(TextOf(after) == TextOf(bytes));
}

// Fuses the chain that ends with `relu` into one node.
void Fuse(Graph& graph, Node relu) {
  const Node bias = relu.input(0).node, product = bias.input(0).node;
  const Output w = bias.input(1);
  relu.SetOp("_FusedMatMul");
  REQUIRE(relu.SetInput(0, product.input(0)).ok());
  REQUIRE(relu.AddInput(product.input(1)).ok());
  REQUIRE(relu.AddInput(w).ok());
  REQUIRE(graph.RemoveNode(bias).ok());
  REQUIRE(graph.RemoveNode(product).ok());
}

void CheckFused(Graph& graph) {
  std::vector<std::string> expected;
  for (int i = 0; i < kChains; ++i) {
    expected.push_back(absl::StrCat("relu", i, " = _FusedMatMul(x", i, ", w", i,
                                    ", w", i, ")"));
    for (const char* name : {"x", "w"}) {
      expected.push_back(absl::StrCat(name, i, " = Const()"));
    }
  }
  std::sort(expected.begin(), expected.end());
  CHECK(TextOf(graph.ToString()) == expected);
}

TEST_CASE("Nodes are removed during iteration") {
  const std::string bytes = Shuffled();
  Graph graph = Graph::Parse(bytes).value();
  int visited = 0;
  for (Node node : graph.nodes()) {
    ++visited;
    REQUIRE_FALSE(node.removed());
    if (node.op() == "Relu") Fuse(graph, node);
  }
  CHECK(visited > 3 * kChains);
  CHECK(visited < kNodes);
  CheckFused(graph);
}

TEST_CASE("Nodes are removed during iteration over an op") {
  const std::string bytes = Shuffled();
  Graph graph = Graph::Parse(bytes).value();
  int visited = 0;
  for (Node relu : graph.nodes("Relu")) {
    ++visited;
    Fuse(graph, relu);
  }
  CHECK(visited == kChains);
  CheckFused(graph);
}

TEST_CASE("Iteration over an op skips the nodes that it removes ahead") {
  const std::string bytes = Shuffled();
  Graph graph = Graph::Parse(bytes).value();
  std::vector<Node> relus;
  for (Node relu : graph.nodes("Relu")) relus.push_back(relu);
  int visited = 0;
  for (Node relu : graph.nodes("Relu")) {
    REQUIRE(relu == relus[3 * visited]);
    relu.SetAttr("seen", true);
    for (int ahead = 1; ahead < 3; ++ahead) {
      const size_t i = 3 * visited + ahead;
      if (i < relus.size()) REQUIRE(graph.RemoveNode(relus[i]).ok());
    }
    ++visited;
  }
  CHECK(visited == (kChains + 2) / 3);
}

TEST_CASE("Iteration over an op visits nodes that it adds") {
  const std::string bytes = Shuffled();
  Graph graph = Graph::Parse(bytes).value();
  int visited = 0;
  for (Node relu : graph.nodes("Relu")) {
    if (++visited > kChains) {
      REQUIRE(relu.name() == absl::StrCat("added", visited - kChains - 1));
      continue;
    }
    Node added =
        graph.AddNode(absl::StrCat("added", visited - 1), "Relu").value();
    REQUIRE(added.AddInput(relu.input(0)).ok());
    relu.SetOp("Elu");
  }
  CHECK(visited == 2 * kChains);
}

TEST_CASE("The table of ops grows beyond its initial capacity") {
  Graph graph;
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(graph.AddNode(absl::StrCat("n", i), absl::StrCat("Op", i)).ok());
  }
  for (int i = 0; i < 1000; ++i) {
    const std::string op = absl::StrCat("Op", i);
    REQUIRE(graph.has_op(op));
    for (Node node : graph.nodes(op)) {
      REQUIRE(node.name() == absl::StrCat("n", i));
    }
  }
  Graph parsed = Graph::Parse(graph.ToString()).value();
  CHECK(parsed.FindNode("n999").op() == "Op999");
}

// With more than 32768 names, they are looked up in batches.
TEST_CASE("Inputs of a large graph are resolved in batches") {
  constexpr int kMany = 40000;
  std::vector<std::string> nodes;
  for (int i = 0; i < kMany; ++i) {
    nodes.push_back(NodeDef(absl::StrCat("n", i), "X",
                            {absl::StrCat("n", (i * 7 + 1) % kMany)}));
  }
  Graph graph = Graph::Parse(InGraph(nodes)).value();
  int i = 0;
  for (Node node : graph.nodes()) {
    REQUIRE(node.input(0).node.name() ==
            absl::StrCat("n", (i++ * 7 + 1) % kMany));
  }
  CHECK(graph.status().ok());
}

}  // namespace
}  // namespace tfplug::large_graph_test
