// SPDX-License-Identifier: Apache-2.0
// Tests nodes with very many inputs, control inputs, uses or attributes. Each
// test takes well under a second in linear time; in quadratic time, it would
// exceed the timeout of a test program.
#include <doctest/doctest.h>
#include <tfplug/graph/graph.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/build_graph.h"

namespace tfplug::wide_node_test {
namespace {

constexpr int kMany = 200000;

// Returns nodes x0, x1, ... and a node "wide" with all of them as inputs.
std::string WideGraph(const char* prefix, int count = kMany) {
  std::string graph;
  std::vector<std::string> inputs;
  for (int i = 0; i < count; ++i) {
    const std::string name = absl::StrCat("x", i);
    internal::AppendField(graph, 1, NodeDef(name, "Const"));
    inputs.push_back(prefix + name);
  }
  internal::AppendField(graph, 1, NodeDef("wide", "AddN", inputs));
  return graph;
}
std::vector<Node> Sources(Graph& graph) {
  std::vector<Node> nodes;
  for (Node node : graph.nodes("Const")) nodes.push_back(node);
  return nodes;
}

TEST_CASE("Inputs of a wide node: by index, as a range, and as uses") {
  Graph graph = Graph::Parse(WideGraph("")).value();
  const Node wide = graph.FindNode("wide");
  // First for the parsed node, then for the edited one.
  for (int round = 0; round < 2; ++round) {
    CHECK(wide.num_inputs() == kMany);
    CHECK(wide.num_controls() == 0);
    int64_t sum = 0;
    for (int i = 0; i < wide.num_inputs(); ++i) sum += wide.input(i).node.id();
    for (Input input : wide.inputs()) {
      sum -= input.from.node.id();
      REQUIRE(wide.input(input.index) == input.from);
    }
    CHECK(sum == 0);
    int i = 0;
    for (Node node : graph.nodes("Const")) {
      for (Use use : node.uses()) REQUIRE(use.input == i);
      ++i;
    }
    REQUIRE(wide.SetInput(0, wide.input(0)).ok());
  }
}

TEST_CASE("Every edit of the inputs of a wide node") {
  Graph graph = Graph::Parse(WideGraph("")).value();
  const std::vector<Node> x = Sources(graph);
  const Node wide = graph.FindNode("wide");
  for (int i = 0; i < kMany; ++i) {
    REQUIRE(wide.SetInput(i, x[static_cast<size_t>(kMany - 1 - i)]).ok());
  }
  CHECK(wide.input(3).node == x[kMany - 4]);
  for (Node node : x) REQUIRE(wide.AddInput({node, 1}).ok());
  CHECK(wide.num_inputs() == 2 * kMany);
  // From the front, from the end, and from the middle.
  for (int i = 0; i < kMany / 2; ++i) REQUIRE(wide.RemoveInput(0).ok());
  CHECK(wide.input(0).node == x[kMany / 2 - 1]);
  for (int i = 0; i < kMany / 2; ++i) {
    REQUIRE(wide.RemoveInput(wide.num_inputs() - 1).ok());
  }
  CHECK(wide.num_inputs() == kMany);
  for (int i = 0; i < kMany / 2; ++i) REQUIRE(wide.RemoveInput(777).ok());
  CHECK(wide.num_inputs() == kMany / 2);
  CHECK(wide.input(776).node == x[kMany / 2 - 777]);
  CHECK(wide.input(777) == Output(x[777], 1));
  const Graph written = Graph::Parse(graph.ToString()).value();
  CHECK(written.FindNode("wide").num_inputs() == kMany / 2);
  CHECK(TextOf(written.FindNode("wide")) == TextOf(wide));
}

TEST_CASE("Every edit of the control inputs of a wide node") {
  Graph graph = Graph::Parse(WideGraph("^")).value();
  const std::vector<Node> x = Sources(graph);
  const Node wide = graph.FindNode("wide");
  CHECK(wide.num_controls() == kMany);
  for (Node node : x) REQUIRE(wide.AddControl(node).ok());
  CHECK(wide.num_controls() == kMany);
  const Node other = graph.AddNode("other", "NoOp").value();
  for (Node node : x) REQUIRE(other.AddControl(node).ok());
  CHECK(other.num_controls() == kMany);
  // Replaces each source with a new node, then all new nodes with one node.
  for (size_t i = 0; i < x.size(); ++i) {
    const Node y = graph.AddNode(absl::StrCat("y", i), "Const").value();
    REQUIRE(graph.ReplaceNode(x[i], y).ok());
  }
  CHECK(wide.num_controls() == kMany);
  CHECK(wide.control(7).name() == "y7");
  for (Node y : graph.nodes("Const")) {
    if (y != x[0]) REQUIRE(graph.ReplaceNode(y, x[0]).ok());
  }
  CHECK(wide.num_controls() == 1);
  for (Node node : x) REQUIRE(wide.AddControl(node).ok());
  int count = 0;
  for (Node control : wide.controls()) count += control == x[count] ? 1 : 0;
  CHECK(count == kMany);
  for (Node node : x) REQUIRE(wide.RemoveControl(node).ok());
  CHECK(wide.num_controls() == 0);
  CHECK(other.num_controls() == 1);
}

TEST_CASE("Uses of a node by many nodes, and by many inputs of one node") {
  std::vector<std::string> nodes = {NodeDef("hub", "Const"),
                                    NodeDef("next", "Const")};
  nodes.push_back(
      NodeDef("wide", "AddN", std::vector<std::string>(kMany, "hub:1")));
  for (int i = 0; i < kMany; ++i) {
    nodes.push_back(NodeDef(absl::StrCat("u", i), "Neg", {"hub", "^hub"}));
  }
  Graph graph = Graph::Parse(InGraph(nodes)).value();
  const Node hub = graph.FindNode("hub"), next = graph.FindNode("next");
  const Node wide = graph.FindNode("wide");
  CHECK(hub.num_uses() == 3 * kMany);
  int expected = 0;
  for (Use use : hub.uses(1)) REQUIRE(use.input == expected++);
  CHECK(expected == kMany);
  REQUIRE(hub.SetName("renamed").ok());
  REQUIRE(graph.ReplaceUses({hub, 1}, next).ok());
  CHECK(wide.input(kMany - 1) == Output(next));
  REQUIRE(graph.ReplaceNode(hub, next).ok());
  CHECK(hub.num_uses() == 0);
  CHECK(next.num_uses() == 3 * kMany);
  REQUIRE(graph.RemoveNode(hub).ok());
  CHECK(TextOf(graph.FindNode("u9")) == "u9 = Neg(next, ^next)");
}

TEST_CASE("Many nodes are inserted after one node, which is renamed often") {
  Graph graph = Graph::Parse(WideGraph("", 1)).value();
  const Node source = graph.FindNode("x0");
  Node last = source;
  for (int i = 0; i < kMany; ++i) {
    const Node added = graph.AddNode(absl::StrCat("n", i), "Neg").value();
    if (i % 2 == 0) {
      REQUIRE(graph.ReplaceUses(source, added).ok());
    } else {
      REQUIRE(graph.ReplaceNode(source, added).ok());
    }
    REQUIRE(added.AddInput(source).ok());
    REQUIRE(source.SetName(absl::StrCat("x", i + 1)).ok());
    last = added;
  }
  CHECK(source.num_uses() == 1);
  CHECK(last.input(0) == Output(source));
  CHECK(graph.FindNode("n0").input(0).node == graph.FindNode("n1"));
  CHECK(graph.FindNode("wide").input(0).node == graph.FindNode("n0"));
}

// Returns the length of the list that an edit of all uses of a node goes
// through: the uses, and those that have ended and were not dropped.
int CountEntries(Node node) {
  int count = 0;
  internal::Access::state(node)->uses().ForEach(
      node.id(), [&](const graph_internal::UseEntry&) { ++count; });
  return count;
}

TEST_CASE("Each edit of all uses of a node drops those that have ended") {
  Graph graph;
  const Node hub = graph.AddNode("hub", "Const").value();
  const Node other = graph.AddNode("other", "Const").value();
  const Node user = graph.AddNode("user", "Neg").value();
  REQUIRE(user.AddInput(other).ok());
  const auto end_uses = [&] {
    for (int i = 0; i < 100; ++i) {
      REQUIRE(user.SetInput(0, hub).ok());
      REQUIRE(user.SetInput(0, other).ok());
    }
  };
  const std::function<absl::Status()> edits[] = {
      [&] { return graph.ReplaceUses(hub, other); },
      [&] { return graph.ReplaceNode(hub, other); },
      [&] { return hub.SetName("renamed"); },
  };
  CHECK(CountEntries(hub) == 0);  // Builds the lists of uses.
  for (const auto& edit : edits) {
    end_uses();
    CHECK(CountEntries(hub) >= 100);
    REQUIRE(edit().ok());
    CHECK(CountEntries(hub) <= 1);  // The last one remains.
  }
}

TEST_CASE("A control edge to a wide node from a node with many uses") {
  // In the worst case, AddControl() is linear in the shorter list.
  Graph graph = Graph::Parse(WideGraph("^")).value();
  const Node wide = graph.FindNode("wide");
  const Node few = graph.AddNode("few", "NoOp").value();
  for (Node node : graph.nodes("Const")) REQUIRE(few.AddControl(node).ok());
  const Node hub = graph.FindNode("x0");
  for (int i = 0; i < kMany; ++i) {
    const Node user = graph.AddNode(absl::StrCat("user", i), "NoOp").value();
    REQUIRE(user.AddControl(hub).ok());
  }
  CHECK(hub.num_uses() == kMany + 2);
  REQUIRE(wide.RemoveControl(hub).ok());
  CHECK(wide.num_controls() == kMany - 1);
}

TEST_CASE("A control edge to a wide node is added and removed many times") {
  Graph graph = Graph::Parse(WideGraph("^", 1000)).value();
  const Node wide = graph.FindNode("wide");
  const Node other = graph.AddNode("other", "NoOp").value();
  const Node user = graph.AddNode("user", "NoOp").value();
  REQUIRE(user.AddControl(other).ok());
  for (int i = 0; i < kMany; ++i) {
    REQUIRE(wide.AddControl(other).ok());
    REQUIRE(wide.RemoveControl(other).ok());
  }
  CHECK(wide.num_controls() == 1000);
  CHECK(other.num_uses() == 1);
  // A loop over the uses continues after they were dropped.
  int seen = 0;
  REQUIRE(wide.AddControl(other).ok());
  for (Use use : other.uses()) {
    REQUIRE(wide.RemoveControl(other).ok());
    if (++seen < 5) REQUIRE(wide.AddControl(other).ok());
    CHECK(use.is_control());
  }
  CHECK(seen == 5);
}

TEST_CASE("Attributes of a node are set and removed one by one") {
  Graph graph;
  const Node node = graph.AddNode("n", "X").value();
  for (int i = 0; i < kMany; ++i) node.SetAttr(absl::StrCat("a", i), i);
  for (int i = 0; i < kMany; ++i) node.SetAttr(absl::StrCat("a", i), -i);
  CHECK(node.GetAttrs().size() == kMany);
  CHECK(node.GetAttr<int>("a4711").value() == -4711);
  for (int i = 0; i < kMany; i += 2) node.RemoveAttr(absl::StrCat("a", i));
  CHECK_FALSE(node.HasAttr("a4710"));
  CHECK(node.GetAttrs().size() == kMany / 2);
  const Graph written = Graph::Parse(graph.ToString()).value();
  CHECK(written.FindNode("n").GetAttrs().size() == kMany / 2);
  CHECK(written.FindNode("n").GetAttr<int>("a4711").value() == -4711);
}

TEST_CASE("A cycle in a wide graph is described") {
  std::vector<std::string> inputs;
  std::vector<std::string> nodes;
  for (int i = 0; i < kMany; ++i) {
    inputs.push_back(absl::StrCat("x", i));
    nodes.push_back(NodeDef(inputs.back(), "Neg", {"wide"}));
  }
  nodes.push_back(NodeDef("wide", "AddN", inputs));
  Graph graph = Graph::Parse(InGraph(nodes)).value();
  const auto cycle = graph.TopologicalOrder().status();
  CHECK(absl::IsInvalidArgument(cycle));
  CHECK(cycle.message().find("'wide' <- '") != absl::string_view::npos);
}

// Compares the node with a plain list of inputs.
TEST_CASE("Random edits of one node's inputs") {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    Graph graph = Graph::Parse(WideGraph("", 9)).value();
    const std::vector<Node> x = Sources(graph);
    const Node wide = graph.FindNode("wide");
    std::vector<Output> list(x.begin(), x.end());
    for (int step = 0; step < 100; ++step) {
      const Output from{x[random() % x.size()], static_cast<int>(step)};
      const size_t size = list.size();
      const size_t at = size == 0 ? 0 : random() % size;
      switch (size == 0 ? 0 : random() % 5) {
        case 0:
          REQUIRE(wide.AddInput(from).ok());
          list.push_back(from);
          break;
        case 1:
          REQUIRE(wide.SetInput(static_cast<int>(at), from).ok());
          list[at] = from;
          break;
        case 2:
          list.resize(random() % 9, from);
          std::reverse(list.begin(), list.end());
          REQUIRE(wide.SetInputs(list).ok());
          break;
        default:
          REQUIRE(wide.RemoveInput(static_cast<int>(at)).ok());
          list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
      }
      REQUIRE(wide.num_inputs() == static_cast<int>(list.size()));
      size_t i = 0;
      for (Input input : wide.inputs()) {
        REQUIRE(input.index == static_cast<int>(i));
        REQUIRE(input.from == list[i]);
        REQUIRE(wide.input(input.index) == list[i]);
        ++i;
      }
      REQUIRE(i == list.size());
      REQUIRE_FALSE(wide.input(static_cast<int>(i)));
      for (Node node : x) {
        for (Use use : node.uses()) {
          REQUIRE(list[static_cast<size_t>(use.input)].node == node);
        }
      }
    }
    CHECK(TextOf(Graph::Parse(graph.ToString())->FindNode("wide")) ==
          TextOf(wide));
  }
}

TEST_CASE("A range of inputs stays valid while the inputs are edited") {
  Graph graph = Graph::Parse(WideGraph("", 4)).value();
  const std::vector<Node> x = Sources(graph);
  const Node wide = graph.FindNode("wide");
  std::string seen;
  for (Input input : wide.inputs()) {
    absl::StrAppend(&seen, input.from.node.name(), " ");
    if (input.from.node == x[0]) {
      REQUIRE(wide.RemoveInput(1).ok());
      REQUIRE(wide.AddInput(x[1]).ok());
    }
  }
  CHECK(seen == "x0 x2 x3 x1 ");
}

TEST_CASE("Data inputs after control inputs keep their places until edited") {
  const std::string bytes = InGraph({
      NodeDef("a", "X"),
      NodeDef("b", "X"),
      NodeDef("n", "Y", {"^a", "b", "^b", "a:1"}),
  });
  Graph graph = Graph::Parse(bytes).value();
  const Node n = graph.FindNode("n");
  const Node a = graph.FindNode("a"), b = graph.FindNode("b");
  CHECK(n.num_inputs() == 2);
  CHECK(n.num_controls() == 2);
  CHECK(n.input(0) == Output(b));
  CHECK(n.input(1) == Output(a, 1));
  CHECK(n.control(0) == a);
  CHECK(n.control(1) == b);
  CHECK(graph.ToString() == bytes);
  REQUIRE(n.SetInput(0, a).ok());
  CHECK(graph.ToString() == InGraph({
                                NodeDef("a", "X"),
                                NodeDef("b", "X"),
                                NodeDef("n", "Y", {"a", "a:1", "^a", "^b"}),
                            }));
}

}  // namespace
}  // namespace tfplug::wide_node_test
