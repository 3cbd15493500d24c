// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/graph/graph.h>

#include <string>

#include "graph/build_graph.h"

namespace tfplug::functions_test {
namespace {

using internal::AppendField;

std::string Entry(const std::string& key, const std::string& value) {
  std::string entry;
  AppendField(entry, 1, key);
  AppendField(entry, 2, value);
  return entry;
}

// Returns a FunctionDef name(x) -> y with two nodes. The second node is also a
// control output. `result` is the source of y.
std::string Function(const std::string& name, const std::string& result) {
  std::string arg, signature, split, relu, function;
  AppendField(arg, 1, "x");
  AppendField(signature, 1, name);
  AppendField(signature, 2, arg);
  AppendField(split, 1, "split");
  AppendField(split, 2, "Split");
  AppendField(split, 3, "x");
  AppendField(relu, 1, "relu");
  AppendField(relu, 2, "Relu");
  AppendField(relu, 3, "split:output:1");
  AppendField(relu, 3, "^split");
  AppendField(function, 1, signature);
  AppendField(function, 3, split);
  AppendField(function, 3, relu);
  AppendField(function, 4, Entry("y", result));
  AppendField(function, 6, Entry("effect", "relu"));
  return function;
}
std::string WithLibrary(const std::string& function,
                        const std::string& another = "") {
  std::string node, library, gradient, graph;
  AppendField(node, 1, "call");
  AppendField(node, 2, "PartitionedCall");
  AppendField(library, 1, function);
  AppendField(gradient, 1, "f");
  AppendField(library, 2, gradient);
  if (!another.empty()) AppendField(library, 1, another);
  AppendField(graph, 2, library);
  AppendField(graph, 1, node);
  AppendField(graph, 4, std::string("\x08\x01", 2));
  return graph;
}

TEST_CASE("A function's body is a graph") {
  const std::string bytes =
      WithLibrary(Function("f", "relu:activations:0"), Function("g", "x"));
  Graph graph = Graph::Parse(bytes).value();
  REQUIRE(graph.GetFunctions().size() == 2);
  CHECK(graph.GetFunctions()[1].name == "g");
  GraphFunction& f = graph.GetFunctions()[0];
  CHECK(f.name == "f");
  Graph& body = f.body;
  const Node x = body.FindNode("x"), split = body.FindNode("split"),
             relu = body.FindNode("relu");
  CHECK(x.op() == "_Arg");
  CHECK(split.input(0) == Output(x));
  CHECK(relu.input(0) == split.NamedOutput("output", 1));
  CHECK(relu.input(0) != split.NamedOutput("output", 0));
  CHECK(relu.control(0) == split);
  CHECK(relu.num_uses() == 2);
  CHECK(body.TopologicalOrder().value().size() == 5);
  CHECK(body.status().ok());
  CHECK(absl::IsFailedPrecondition(body.RemoveNode(relu)));
  CHECK_FALSE(graph.changed());
  CHECK(graph.ToString() == bytes);

  SUBCASE("edits update the results") {
    // The control output refers to the node by its new name.
    REQUIRE(body.ReplaceUses(relu.NamedOutput("activations", 0), x).ok());
    REQUIRE(relu.SetName("renamed").ok());
    CHECK(graph.changed());
    const std::string written = graph.ToString();
    Graph reread = Graph::Parse(written).value();
    REQUIRE(reread.GetFunctions().size() == 2);
    Graph& other = reread.GetFunctions()[0].body;
    CHECK(TextOf(other) == TextOf(body));
    CHECK(other.FindNode("x").num_uses() == 2);
    CHECK(other.FindNode("renamed").num_uses(kControl) == 1);
    CHECK(reread.GetFunctions()[1].bytes == Function("g", "x"));
    CHECK(reread.FindNode("call").op() == "PartitionedCall");
  }
  SUBCASE("nodes are added and removed") {
    const Node added = body.AddNode("added", "Neg").value();
    REQUIRE(added.AddInput(split.NamedOutput("output", 0)).ok());
    for (Node result : body.nodes("_Retval")) {
      REQUIRE(result.SetInput(0, added.NamedOutput("y", 0)).ok());
    }
    const std::string written = graph.ToString();
    CHECK(written.size() == graph.ByteSize());
    Graph reread = Graph::Parse(written).value();
    Graph& other = reread.GetFunctions()[0].body;
    CHECK(other.num_nodes() == body.num_nodes());
    const Node again = other.FindNode("added");
    CHECK(again.input(0) == other.FindNode("split").NamedOutput("output", 0));
    CHECK(again.uses(again.NamedOutput("y", 0).port).empty() == false);
    CHECK(written.find("_Arg") == written.npos);
    CHECK(written.find("_Retval") == written.npos);
  }
}

TEST_CASE("A malformed function is skipped and reported") {
  std::string bad = Function("f", "x");
  AppendField(bad, 3, "\x0a\x7f");
  const std::string bytes = WithLibrary(bad, Function("g", "x"));
  Graph graph = Graph::Parse(bytes).value();
  CHECK(graph.GetFunctions().size() == 1);
  CHECK_FALSE(graph.status().ok());
  REQUIRE(graph.GetFunctions()[0].body.FindNode("relu").SetName("r").ok());
  CHECK(graph.ToString().find(bad) != std::string::npos);
}

}  // namespace
}  // namespace tfplug::functions_test
