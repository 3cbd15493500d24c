// SPDX-License-Identifier: Apache-2.0
#include "tfplug/testing/graph_text.h"

#include <doctest/doctest.h>
#include <tfplug/testing.h>

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"

namespace tfplug::graph_text_test {
namespace {

using testing::AddNodes, testing::CompareGraph, testing::PrintGraph;

const testing::GraphTextOptions kOptions = {"SIM", "T=float", nullptr};

// Returns the error of a text.
std::string ErrorOf(const char* text) {
  Graph graph;
  return std::string(AddNodes(graph, text, kOptions).status().message());
}

TEST_CASE("a graph is printed as it was written") {
  const std::string text = R"(x = Placeholder()
w = Placeholder()
half: float = 0.5 (^x)
axes: int32[2] = [0, -1]
none: int64[0] = []
big: double[1,2] = [1e+300, -0.1]
y = MatMul(x, w:1, ^half) @/device:CPU:0 {a=true, b=-3, c=0.1, d="q\"\n"}
z = If(y, ^w, ^x) {a=shape[2,?], b=shape[*], c=@body, d=half}
l = Op() @ {T=half, a=[1, 2], b=[0.5, 1.0], c=["x"], d=[], e=[float, half]}
m = Op(next) {a=[true, false], b=[shape[1], shape[]], c=[@f, @g], d=inf}
next = NextIteration(m)
)";
  Graph graph;
  const auto last = AddNodes(graph, text, kOptions);
  REQUIRE_MESSAGE(last.ok(), last.status().ToString());
  CHECK(last->name() == "next");
  CHECK(PrintGraph(graph, kOptions) == text);
  CHECK(CompareGraph(graph, text, kOptions) == "");

  const Node y = graph.FindNode("y");
  CHECK(y.device() == "/device:CPU:0");
  CHECK(y.GetAttr<float>("c").value() == 0.1f);
  CHECK(y.GetAttr<std::string>("d").value() == "q\"\n");
  CHECK(graph.FindNode("x").device() ==
        "/job:localhost/replica:0/task:0/device:SIM:0");
  CHECK(graph.FindNode("x").GetAttr<DataType>("T").value() == DataType::kFloat);
  CHECK(graph.FindNode("l").device() == "");
  CHECK(graph.FindNode("m").GetAttr<float>("d").value() ==
        std::numeric_limits<float>::infinity());
  CHECK_FALSE(graph.FindNode("half").HasAttr("T"));
}

TEST_CASE("short forms") {
  testing::TF_GrapplerItem item;
  testing::GraphTextOptions options;
  options.item = &item;
  Graph graph;
  const auto last = AddNodes(graph, R"(
    x, y: half[?,7] = Placeholder() {T=half, !U}

    z: float[*] = Relu(
        x) @CPU
    ones: int8[2,2] = 1
    list = [1, 2.5]
  )",
                             options);
  REQUIRE_MESSAGE(last.ok(), last.status().ToString());
  CHECK(PrintGraph(graph) ==
        "x = Placeholder() {T=half}\ny = Placeholder() {T=half}\n"
        "z = Relu(x) @/job:localhost/replica:0/task:0/device:CPU:0\n"
        "ones: int8[2,2] = [1, 1, 1, 1]\nlist: float[2] = [1.0, 2.5]\n");
  CHECK(item.outputs.at("y")[0].shape == PartialShape(Shape{-1, 7}));
  CHECK(item.outputs.at("y")[0].dtype == capi::TF_HALF);
  CHECK_FALSE(item.outputs.at("z")[0].shape.has_rank());
}

TEST_CASE("a difference is the line of the text and that of the graph") {
  Graph graph;
  REQUIRE(AddNodes(graph, R"(
    x, before = Placeholder()
    c: float[2] = [1, 2]
    y = Add(x, c, ^before) {a=1, b=2}
    z = Neg(y))",
                   kOptions)
              .ok());
  const auto compare = [&](const char* y, const char* rest = "z = Neg(y)") {
    return CompareGraph(graph, absl::StrCat(y, "\n", rest), kOptions);
  };
  const std::string found = "\n+ y = Add(x, c, ^before) {a=1, b=2}\n";
  // Nodes without inputs, and attributes, may be left out.
  CHECK(compare("y = Add(x, c, ^before)") == "");
  CHECK(compare("y = Add(x, c, ^before) {b=2, T=float, !c}", "...") == "");
  CHECK(compare("c: float[2] = [1, 2]", "...") == "");
  for (const char* wrong :
       {"y = Sub(x, c, ^before)", "y = Add(c, x, ^before)", "y = Add(x, c)",
        "y = Add(x, c:1, ^before)", "y = Add(x, c, ^x)",
        "y = Add(x, c, ^before) @CPU", "y = Add(x, c, ^before) {a=2}",
        "y = Add(x, c, ^before) {a=1.0}", "y = Add(x, c, ^before) {c=1}",
        "y = Add(x, c, ^before) {!b}", "y = Add(x, c, ^before) {T=half}"}) {
    CHECK(compare(wrong) == absl::StrCat("- ", wrong, found));
  }
  CHECK(compare("c: float[2] = [1, 3]", "...") ==
        "- c: float[2] = [1, 3]\n+ c: float[2] = [1.0, 2.0]\n");
  CHECK(compare("c: float[2,1] = [1, 2]", "...") != "");
  CHECK(compare("c: int32[2] = [1, 2]", "...") != "");
  // The attributes of the options are not those of a constant.
  CHECK(CompareGraph(graph, "c: float[2] = [1, 2]\n...",
                     {"SIM", "dtype=half", nullptr}) == "");
  // A node that is missing, and one that is left over.
  CHECK(compare("y = Add(x, c, ^before)", "u = Neg(y)") ==
        "- u = Neg(y)\n+ z = Neg(y)\n");
  // Attributes of the options hold for all nodes that have them.
  graph.FindNode("y").SetAttr("T", DataType::kHalf);
  CHECK(compare("y = Add(x, c, ^before)") ==
        "- y = Add(x, c, ^before)\n"
        "+ y = Add(x, c, ^before) {T=half, a=1, b=2}\n");
  CHECK(compare("y = Add(") != "");
}

TEST_CASE("errors name the line and the remedy") {
  CHECK(ErrorOf("x = Placeholder()\ny = Neg(z)") ==
        "line 2, \"y = Neg(z)\": there is no node 'z'; add a line such as "
        "\"z = Placeholder()\"");
  CHECK(ErrorOf("x = Placeholder()\nx = Placeholder()").find("'x'") !=
        std::string::npos);
  const auto check = [](const std::string& line, const std::string& error) {
    CHECK(ErrorOf(line.c_str()) ==
          absl::StrCat("line 1, \"", line, "\": expected ", error));
  };
  check("x Placeholder()",
        "'=' after the name; a node is written \"name = Op(inputs)\", not "
        "'Placeholder()'");
  check("x =", "an op, a number or a list, not the end of the line");
  check("x = Op", "'(' after the op, not the end of the line");
  check("x = Op(a b)", "')' after the inputs, not 'b)'");
  check("x = Op(a,)", "an input, not ')'");
  check("x = Op() {a}", "'=' after the name of an attribute, not '}'");
  check("x = Op() {a=1 b=2}", "'}' after the attributes, not 'b=2}'");
  check("x = Op() {a=flot}",
        "true, 3, 0.5, \"text\", a type such as float, shape[2,?], @function, "
        "or a [list] of one of these, not 'flot}'");
  check("x = Op() {a=\"b}", "a text that ends with '\"', not '\"b}'");
  check("x = Op() {a=[1, true]}", "elements of one type, not ']}'");
  check("x = Op() {} y", "the end of the line, not 'y'");
  check("x: float[2] = [1]",
        "2 elements instead of the 1 before, not the end of the line");
  check("x: flot = 1", "a type such as float, not 'flot = 1'");
  check("x: float[a] = Op()",
        "dimensions such as [2,?], or [*] for an unknown rank, not "
        "'[a] = Op()'");
  check("x: int32 = 0.5", "a number of type int32, not '0.5'");
  Graph graph;
  CHECK(AddNodes(graph, "x = Op()", {"", "T", nullptr}).status().message() ==
        "GraphTextOptions::attrs: expected '=' after the name of an "
        "attribute, not '}'");
}

}  // namespace
}  // namespace tfplug::graph_text_test
