// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/graph/graph.h>

#include <algorithm>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/build_graph.h"

namespace tfplug::graph_test {
namespace {

using internal::AppendField;
using internal::AppendVarint;

// Parses a graph, and keeps its bytes until the test program exits.
Graph Parsed(const std::string& bytes) {
  static std::list<std::string> kept;
  kept.push_back(bytes);
  auto graph = Graph::Parse(kept.back());
  REQUIRE_MESSAGE(graph.ok(), graph.status().ToString());
  return *std::move(graph);
}
std::string Names(const NodeList& nodes) {
  std::string names;
  for (Node node : nodes) {
    names += (names.empty() ? "" : " ") + std::string(node.name());
  }
  return names;
}

TEST_CASE("A graph is parsed") {
  const std::string bytes = InGraph({
      NodeDef("a", "Const"),
      NodeDef("b", "Split", {"a"}),
      NodeDef("c", "AddV2", {"b:1", "b", "^a"}),
  });
  Graph graph = Parsed(bytes);
  CHECK(graph.num_nodes() == 3);
  CHECK(graph.has_op("Split"));
  CHECK_FALSE(graph.has_op("split"));
  const Node a = graph.FindNode("a"), b = graph.FindNode("b"),
             c = graph.FindNode("c");
  CHECK_FALSE(graph.FindNode("d"));
  CHECK(c.num_inputs() == 2);
  CHECK(c.input(0) == Output(b, 1));
  CHECK(c.input(1) == Output(b));
  CHECK_FALSE(c.input(2));
  CHECK_FALSE(c.input(-1));
  CHECK(c.num_controls() == 1);
  CHECK(c.control(0) == a);
  CHECK(a.num_uses() == 2);
  CHECK(a.num_uses(0) == 1);
  CHECK(a.num_uses(kControl) == 1);
  std::string uses;
  for (Use use : b.uses()) uses += std::to_string(use.input);
  CHECK(uses == "01");
  int adds = 0;
  for (Node node : graph.nodes("AddV2")) adds += node == c;
  CHECK(adds == 1);
  CHECK_FALSE(graph.changed());
  CHECK(graph.ToString() == bytes);
}

TEST_CASE("Nodes of an op are found at every position") {
  constexpr int kNodes = 40;
  for (int first = 0; first < kNodes; ++first) {
    for (int second = first; second < kNodes; ++second) {
      std::vector<std::string> nodes, expected, found;
      for (int i = 0; i < kNodes; ++i) {
        const bool is_neg = i == first || i == second;
        nodes.push_back(NodeDef(absl::StrCat("n", i), is_neg ? "Neg" : "Abs"));
        if (is_neg) expected.push_back(absl::StrCat("n", i));
      }
      const std::string bytes = InGraph(nodes);
      Graph graph = Parsed(bytes);
      for (Node node : graph.nodes("Neg")) found.emplace_back(node.name());
      REQUIRE(found == expected);
      for (Node node : graph.nodes("Exp")) found.emplace_back(node.name());
      REQUIRE(found == expected);
    }
  }
}

TEST_CASE("Removed nodes are skipped at both ends") {
  Graph graph;
  Add(graph, "a, b, c, d = Neg()");
  for (const char* name : {"a", "d"}) {
    REQUIRE(graph.RemoveNode(graph.FindNode(name)).ok());
  }
  std::string all, negs;
  for (Node node : graph.nodes()) all += std::string(node.name());
  for (Node node : graph.nodes("Neg")) negs += std::string(node.name());
  CHECK(all == "bc");
  CHECK(negs == "bc");
}

TEST_CASE("Inputs are parsed as TensorFlow parses them") {
  Graph graph = Parsed(InGraph({
      NodeDef("a", "X"),
      NodeDef("^a", "X"),
      NodeDef("a:b", "X"),
      NodeDef("a:-", "X"),
      NodeDef("7", "X"),
      NodeDef(
          "n", "X",
          {"a:007", "^a:3", "a:b", "a:b:2", "7", "a:4294967297", "a:-", "^7"}),
  }));
  const Node n = graph.FindNode("n");
  REQUIRE(graph.status().ok());
  CHECK(n.input(0) == Output(graph.FindNode("a"), 7));
  CHECK(n.input(1) == Output(graph.FindNode("^a"), 3));
  CHECK(n.input(2) == Output(graph.FindNode("a:b")));
  CHECK(n.input(3) == Output(graph.FindNode("a:b"), 2));
  CHECK(n.input(4) == Output(graph.FindNode("7")));
  CHECK(n.input(5) == Output(graph.FindNode("a"), 1));
  CHECK(n.input(6) == Output(graph.FindNode("a:-")));
  CHECK(n.control(0) == graph.FindNode("7"));
}

TEST_CASE("Repeated and reordered fields are merged as in protobuf") {
  std::string entry, long_tag, node;
  // The value in two parts, which are merged; an earlier entry is ignored.
  AppendField(entry, 1, "k");
  AppendField(entry, 2, std::string("\x18\x05", 2));
  AppendField(node, 5, entry);
  entry.clear();
  AppendField(entry, 2, std::string("\x0a\x02\x18\x01", 4));
  AppendField(entry, 1, "k");
  AppendField(entry, 2, std::string("\x0a\x03\x1a\x01\x02", 5));
  AppendField(node, 5, entry);
  AppendField(node, 3, "^x");
  AppendField(node, 1, "first");
  AppendField(node, 2, "Op");
  AppendField(node, 3, "x:1");
  AppendField(node, 1, uint64_t{7});  // Wrong wire type: unknown.
  AppendField(node, 99, "unknown");
  node += "\x8a";  // The name's tag, in two bytes, and its length in five.
  node += std::string("\x00\x84\x80\x80\x80\x00last", 10);
  const std::string bytes = InGraph({node, NodeDef("x", "X")});
  Graph graph = Parsed(bytes);
  const Node last = graph.FindNode("last");
  REQUIRE(last);
  CHECK_FALSE(graph.FindNode("first"));
  CHECK(last.op() == "Op");
  CHECK(last.num_inputs() == 1);
  CHECK(last.input(0).port == 1);
  CHECK(last.num_controls() == 1);
  const std::vector<int64_t> both = {1, 2};
  CHECK(last.GetAttr<std::vector<int64_t>>("k").value() == both);
  CHECK(last.GetAttrs().size() == 1);
  CHECK(graph.ToString() == bytes);
  last.SetDevice("d");
  const std::string edited = graph.ToString();
  Graph again = Parsed(edited);
  CHECK(again.FindNode("last").device() == "d");
  CHECK(again.FindNode("last").GetAttr<std::vector<int64_t>>("k").value() ==
        both);
  CHECK(edited.find("unknown") != edited.npos);
}

TEST_CASE("Malformed bytes are rejected") {
  const std::string node = InGraph({NodeDef("a", "Const", {"b", "c"})});
  for (size_t size = 1; size < node.size(); ++size) {
    CHECK_FALSE(Graph::Parse(node.substr(0, size)).ok());
  }
  // A field at the end of a node: without a length or a value, too long,
  // without its end, without its beginning, and of a type that does not exist.
  for (const char* field : {"\x32", "\x32\x05z", "\x30", "\x35\x01\x02\x03",
                            "\x33", "\x34", "\x36"}) {
    CHECK_FALSE(Graph::Parse(InGraph({NodeDef("a", "X") + field})).ok());
  }
  const auto status = Graph::Parse("\x0a\x05").status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(status.message() ==
        "the bytes are not a GraphDef: the field at byte 0 is malformed");
  // Complete groups are skipped; nesting is limited.
  CHECK(Graph::Parse(std::string("\x33\x3b\x3c\x34", 4)).ok());
  CHECK_FALSE(Graph::Parse(std::string("\x33\x3b\x34\x3c", 4)).ok());
  CHECK_FALSE(Graph::Parse(std::string(100000, '\x33')).ok());
  CHECK_FALSE(Graph::Parse(std::string("\x00", 1)).ok());
  CHECK_FALSE(Graph::Parse(std::string("\x06", 1)).ok());
  CHECK(Graph::Parse("").value().num_nodes() == 0);
  // The size is checked before any byte is read.
  const char byte = 0;
  const auto large = Graph::Parse(absl::string_view(&byte, size_t{1} << 31));
  CHECK(large.status().message() ==
        "the graph has 2147483648 bytes, but TensorFlow cannot read more than "
        "2147483647; keep large constants in variables");
}

TEST_CASE("status() reports duplicate and missing names") {
  Graph twice = Parsed(InGraph({NodeDef("a", "X"), NodeDef("a", "Y")}));
  CHECK(twice.status().ok());
  CHECK(twice.FindNode("a").op() == "X");
  CHECK(twice.status().message() == "two nodes have the name 'a'");
  Graph missing = Parsed(InGraph({NodeDef("a", "X", {"b:1"})}));
  CHECK_FALSE(missing.FindNode("a").input(0));
  CHECK(missing.status().message() ==
        "node 'a' has the input 'b:1', but the graph has no node 'b'");
  missing.FindNode("a").SetOp("Y");
  CHECK(missing.ToString() == InGraph({NodeDef("a", "Y", {"b:1"})}));
}

TEST_CASE("Handles stay valid when nodes are added and removed") {
  Graph graph = Parsed(InGraph({NodeDef("a", "X"), NodeDef("b", "X"),
                                NodeDef("c", "X"), NodeDef("d", "X")}));
  const Node d = graph.FindNode("d");
  REQUIRE(graph.RemoveNode(graph.FindNode("b")).ok());
  Graph moved = std::move(graph);
  CHECK(d.name() == "d");
  CHECK(moved.num_nodes() == 3);
  int seen = 0;
  for (Node node : moved.nodes("X")) {
    if (++seen == 1) REQUIRE(moved.AddNode("e", "X").ok());
    if (node == d) REQUIRE(moved.RemoveNode(moved.FindNode("c")).ok());
  }
  CHECK(seen == 4);
  CHECK(moved.ToString() ==
        InGraph({NodeDef("a", "X"), NodeDef("d", "X"), NodeDef("e", "X")}));
}

TEST_CASE("An edit that fails gives the reason and changes nothing") {
  const std::string bytes =
      InGraph({NodeDef("a", "X"), NodeDef("b", "Y", {"a"})});
  Graph graph = Parsed(bytes), other;
  const Node a = graph.FindNode("a"), b = graph.FindNode("b");
  const Node foreign = other.AddNode("f", "X").value();
  const auto message = [](const absl::Status& status) {
    return std::string(status.message());
  };
  CHECK(message(graph.RemoveNode(a)) ==
        "RemoveNode: node 'a' (X) is still used by 'b'; redirect its uses "
        "first, with ReplaceUses() or ReplaceNode()");
  CHECK(message(graph.RemoveNode({})) == "RemoveNode: the node is null");
  CHECK(message(graph.AddNode("a", "X").status()) ==
        "AddNode: a node 'a' already exists; UniqueName() returns a free name");
  CHECK(absl::IsInvalidArgument(graph.AddNode("", "X").status()));
  CHECK(message(b.SetInput(0, foreign)) ==
        "node 'b' (Y): an input must come from a node of the same graph, but "
        "the source is in another graph");
  CHECK(message(b.SetInput(3, a)) ==
        "node 'b' (Y): cannot set input 3 to output 0 of node 'a': it has 1 "
        "inputs, and outputs begin with 0");
  CHECK(message(b.RemoveInput(1)) ==
        "node 'b' (Y): cannot remove input 1: it has 1 inputs");
  CHECK(message(b.SetName("a")) ==
        "node 'b' (Y): cannot be renamed to 'a': another node has that name");
  CHECK(absl::IsInvalidArgument(graph.ReplaceUses({a, -1}, b)));
  CHECK(message(b.GetAttr<int64_t>("k").status()) ==
        "node 'b' (Y): it has no attribute 'k'");
  CHECK(message(b.CopyAttr(a, "k")) == "node 'a' (X): it has no attribute 'k'");
  CHECK_FALSE(graph.changed());
  CHECK(graph.ToString() == bytes);
}

TEST_CASE("Edits redirect uses") {
  Graph graph;
  const Node a = Add(graph, "a = Split()"), b = Add(graph, "b = X(a:1)"),
             c = Add(graph, "c = Y(a:1, a, ^a)"), d = Add(graph, "d = Y(a:1)");
  REQUIRE(graph.ReplaceUses({a, 1}, b).ok());
  CHECK(TextOf(graph) ==
        Lines{"a = Split()", "b = X(a:1)", "c = Y(b, a, ^a)", "d = Y(b)"});
  REQUIRE(graph.ReplaceNode(a, d).ok());
  CHECK(TextOf(c) == "c = Y(b, d, ^d)");
  CHECK(TextOf(b) == "b = X(d:1)");
  CHECK(a.num_uses() == 0);
  REQUIRE(b.SetName("new").ok());
  CHECK(TextOf(c) == "c = Y(new, d, ^d)");
  CHECK(graph.FindNode("new") == b);
  CHECK(graph.UniqueName("new") == "new_1");
  CHECK(graph.UniqueName("free") == "free");
  REQUIRE(c.RemoveControl(d).ok());
  REQUIRE(c.RemoveInput(0).ok());
  CHECK(c.input(0) == Output(d));
  CHECK(TextOf(graph.ToString()) == TextOf(graph));
}

TEST_CASE("SetInputs replaces the data inputs") {
  const std::string bytes =
      InGraph({NodeDef("a", "X"), NodeDef("b", "X"),
               NodeDef("c", "X", {"a", "a:1", "^b"}),
               NodeDef("d", "X", {"^b", "a", "^a"}), NodeDef("e", "X", {"c"})});
  Graph graph = Parsed(bytes);
  const Node a = graph.FindNode("a"), b = graph.FindNode("b"),
             c = graph.FindNode("c"), d = graph.FindNode("d");
  REQUIRE(c.SetInputs({{b, 2}, a, c.input(1)}).ok());
  REQUIRE(d.SetInputs({b}).ok());
  REQUIRE(graph.FindNode("e").SetInputs({}).ok());
  const Lines lines = {"a = X()", "b = X()", "c = X(b:2, a, a:1, ^b)",
                       "d = X(b, ^a, ^b)", "e = X()"};
  CHECK(TextOf(graph) == lines);
  CHECK(TextOf(graph.ToString()) == lines);
  CHECK(a.num_uses() == 3);
  CHECK(b.num_uses() == 4);
  CHECK(c.num_uses() == 0);
  // Again, now that the node has lists of its inputs.
  REQUIRE(c.RemoveInput(0).ok());
  REQUIRE(c.RemoveControl(b).ok());
  REQUIRE(c.AddControl(a).ok());
  REQUIRE(c.SetInputs({d, {d, 1}}).ok());
  REQUIRE(c.SetInput(0, {d, 2}).ok());
  CHECK(TextOf(c) == "c = X(d:2, d:1, ^a)");
  CHECK(TextOf(graph.ToString()) == TextOf(graph));
  CHECK(a.num_uses() == 2);
  CHECK(b.num_uses() == 2);
}

TEST_CASE("SetInputs that fails changes nothing") {
  const std::string bytes =
      InGraph({NodeDef("a", "X"), NodeDef("b", "Y", {"a"}), NodeDef("c", "Y")});
  Graph graph = Parsed(bytes);
  const Node a = graph.FindNode("a"), b = graph.FindNode("b");
  CHECK(b.SetInputs({a, Node()}).message() ==
        "node 'b' (Y): an input must come from a node of the same graph, but "
        "the source is null");
  CHECK(b.SetInputs({a, {a, -1}}).message() ==
        "node 'b' (Y): an input cannot come from output -1 of node 'a'");
  CHECK(graph.ToString() == bytes);
  const Node c = graph.FindNode("c");
  REQUIRE(graph.RemoveNode(c).ok());
  CHECK(c.SetInputs({}).message() == "node 'c' (): the node was removed");
  CHECK(b.SetInputs({c}).message() ==
        "node 'b' (Y): an input must come from a node of the same graph, but "
        "the source was removed");
}

TEST_CASE("Uses that are first read after edits") {
  const auto edit = [](Graph& graph) {
    const Node a = graph.FindNode("a"), b = graph.FindNode("b");
    CHECK(graph.FindNode("c").SetInput(0, b).ok());
    CHECK(graph.FindNode("d").RemoveInput(0).ok());
    CHECK(graph.FindNode("d").AddControl(a).ok());
    const Node e = graph.AddNode("e", "X").value();
    CHECK(e.AddInput({a, 1}).ok());
    CHECK(e.AddInput(b).ok());
    CHECK(e.SetInput(1, {a, 2}).ok());
    CHECK(graph.RemoveNode(graph.FindNode("f")).ok());
  };
  const auto uses = [](Node node) {
    std::string text;
    for (Use use : node.uses()) {
      text += absl::StrCat(use.node.name(), " ", use.input, ", ");
    }
    CHECK(node.num_uses() == std::count(text.begin(), text.end(), ','));
    return text;
  };
  const std::string bytes = InGraph(
      {NodeDef("a", "X"), NodeDef("b", "X"), NodeDef("c", "X", {"a", "a:1"}),
       NodeDef("d", "X", {"a", "b"}), NodeDef("f", "X", {"b", "^a"})});
  for (const bool is_read_before : {false, true}) {
    Graph graph = *Graph::Parse(bytes);
    if (is_read_before) CHECK(uses(graph.FindNode("b")) == "d 1, f 0, ");
    edit(graph);
    CHECK(uses(graph.FindNode("a")) == "c 1, d -1, e 0, e 1, ");
    CHECK(uses(graph.FindNode("b")) == "d 0, c 0, ");
  }
}

TEST_CASE("A graph can be edited after it has been written") {
  const std::string bytes = InGraph(
      {NodeDef("a", "Const"), NodeDef("b", "Const"),
       NodeDef("c", "AddV2", {"a", "a:1"}), NodeDef("d", "Neg", {"c"})});
  Graph graph = Parsed(bytes);
  const Node b = graph.FindNode("b"), c = graph.FindNode("c");
  REQUIRE(c.SetInput(0, b).ok());
  REQUIRE(c.SetInput(1, {b, 1}).ok());
  CHECK(TextOf(graph.ToString()) ==
        Lines{"a = Const()", "b = Const()", "c = AddV2(b, b:1)", "d = Neg(c)"});
  REQUIRE(b.SetName("e").ok());
  REQUIRE(c.SetName("f").ok());
  CHECK(TextOf(graph.ToString()) ==
        Lines{"a = Const()", "d = Neg(f)", "e = Const()", "f = AddV2(e, e:1)"});
}

TEST_CASE("Topological order and cycles") {
  Graph graph = Parsed(InGraph({
      NodeDef("c", "X", {"b", "^a"}),
      NodeDef("enter", "Enter", {"a"}),
      NodeDef("merge", "Merge", {"enter", "next"}),
      NodeDef("next", "NextIteration", {"merge"}),
      NodeDef("b", "X", {"a"}),
      NodeDef("a", "X"),
  }));
  CHECK(Names(graph.TopologicalOrder().value()) == "a enter b merge c next");
  REQUIRE(graph.FindNode("a").AddInput(graph.FindNode("c")).ok());
  const auto cycle = graph.TopologicalOrder().status();
  CHECK(absl::IsInvalidArgument(cycle));
  for (const char* name : {"'a'", "'c'"}) {
    CHECK(cycle.message().find(name) != absl::string_view::npos);
  }
  CHECK(cycle.message().find("merge") == absl::string_view::npos);
  Graph sorted = Parsed(InGraph({NodeDef("z", "X"), NodeDef("a", "X", {"z"})}));
  CHECK(Names(sorted.TopologicalOrder().value()) == "z a");
}

TEST_CASE("A workspace is reused") {
  GraphWorkspace workspace;
  const std::string bytes = InGraph({NodeDef("a", "X")});
  for (int round = 0; round < 3; ++round) {
    auto graph = Graph::Parse(bytes, &workspace);
    REQUIRE(graph.ok());
    CHECK_FALSE(graph->changed());
    REQUIRE(graph->AddNode("b", "Y").ok());
    REQUIRE(graph->RemoveNode(graph->FindNode("a")).ok());
    CHECK(graph->ToString() == InGraph({NodeDef("b", "Y")}));
  }
  CHECK_FALSE(Graph::Parse("\x0a", &workspace).ok());
  CHECK(Graph::Parse(bytes, &workspace)->num_nodes() == 1);
}

TEST_CASE("A graph owns the temporary string that it parses") {
  Graph graph;
  Add(graph, std::string(100, 'a') + " = Const()");
  Graph copy = Graph::Parse(graph.ToString()).value();
  const std::string other(graph.ByteSize(), '\xff');
  Graph moved = std::move(copy);
  CHECK(moved.FindNode(std::string(100, 'a')).op() == "Const");
  CHECK(moved.ToString() == graph.ToString());
  CHECK_FALSE(moved.changed());
  CHECK_FALSE(Graph::Parse(std::string("\x0a")).ok());
}

TEST_CASE("Names that an input could not refer to are rejected") {
  Graph graph;
  const Node a = graph.AddNode("a", "X").value();
  CHECK(graph.AddNode("b:1", "X").status().message() ==
        "AddNode: the name of a node cannot be 'b:1': as an input, it refers "
        "to an output of node 'b'");
  CHECK(graph.AddNode("^b", "X").status().message() ==
        "AddNode: the name of a node cannot be '^b': as an input, it refers "
        "to a control edge from node 'b'");
  CHECK(a.SetName("a:3").message() ==
        "node 'a' (X): cannot be renamed: the name of a node cannot be 'a:3': "
        "as an input, it refers to an output of node 'a'");
  CHECK(absl::IsInvalidArgument(a.SetName("")));
  CHECK(graph.num_nodes() == 1);
  CHECK(a.name() == "a");
  for (const char* name : {"7", "a:", "a:b", "a^b", "a:1b"}) {
    CHECK_MESSAGE(graph.AddNode(name, "X").ok(), name);
  }
}

TEST_CASE("An edited input refers to a node with an unusual name") {
  Graph graph = Parsed(InGraph({NodeDef("^a", "X"), NodeDef("b:2", "X"),
                                NodeDef("n", "Y", {"c"}), NodeDef("c", "X")}));
  const Node n = graph.FindNode("n");
  REQUIRE(n.SetInput(0, graph.FindNode("^a")).ok());
  REQUIRE(n.AddInput(graph.FindNode("b:2")).ok());
  REQUIRE(n.AddInput({graph.FindNode("b:2"), 1}).ok());
  Graph written = Graph::Parse(graph.ToString()).value();
  CHECK(TextOf(written.FindNode("n")) == "n = Y(^a, b:2, b:2:1)");
  CHECK(written.FindNode("n").num_controls() == 0);
  CHECK(written.status().ok());
}

TEST_CASE("Ports from 2^31 on survive edits") {
  Graph graph = Parsed(InGraph({
      NodeDef("a", "X"),
      NodeDef("n", "Y", {"a:2147483648", "a:4294967294", "a:2147483647"}),
  }));
  REQUIRE(graph.FindNode("a").SetName("b").ok());
  CHECK(graph.ToString() ==
        InGraph({
            NodeDef("b", "X"),
            NodeDef("n", "Y", {"b:2147483648", "b:4294967294", "b:2147483647"}),
        }));
}

TEST_CASE("A colon without digits is part of the name") {
  Graph graph = Parsed(InGraph(
      {NodeDef("a", "X"), NodeDef("a:", "X"), NodeDef("n", "Y", {"a:", "a"})}));
  const Node n = graph.FindNode("n");
  CHECK(n.input(0) == Output(graph.FindNode("a:")));
  CHECK(n.input(1) == Output(graph.FindNode("a")));
  // TensorFlow does not parse 32 digits as a port: 10^32 is 0 modulo 2^32.
  const std::string digits = "a:" + std::string(32, '1');
  Graph many =
      Parsed(InGraph({NodeDef(digits, "X"), NodeDef("n", "Y", {digits})}));
  CHECK(many.FindNode("n").input(0) == Output(many.FindNode(digits)));
}

}  // namespace
}  // namespace tfplug::graph_test
