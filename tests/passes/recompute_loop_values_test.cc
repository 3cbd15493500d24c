// SPDX-License-Identifier: Apache-2.0
#include "tfplug/passes/recompute_loop_values.h"

#include <doctest/doctest.h>
#include <tfplug/graph_pass.h>

#include <cstdint>
#include <string>
#include <vector>

#include "leak_checked_fake.h"

namespace tfplug::recompute_loop_values_test {
namespace {

constexpr char kDevice[] = "/job:localhost/replica:0/task:0/device:SIM:0";

// A loop that pushes `value()` onto a list, and one that pops it and uses it in
// `user`. Both have a counter.
struct Loops {
  Loops() {
    Integer("zero", 0);
    Integer("step", 1);
    Add("cond", "LoopCond", {});
    counter = Variable("i", "forward", Add("start", "Identity", {"zero"}));
    Next(counter, Add("more", "AddV2", {"i/switch:1", "step"}));
    Node empty = Add("empty", "EmptyTensorList", {"zero", "zero"});
    list = Variable("list", "forward", empty);
    push = Add("push", "TensorListPushBack", {"list/switch:1", "i/switch:1"});
    push.SetAttr("element_dtype", DataType::kInt32);
    Next(list, push);
    Node end = Add("end", "Exit", {"list/switch:0"});
    Add("n", "Exit", {"i/switch:0"});
    gradient_list = Variable("back", "backward", end);
    gradient_counter =
        Variable("k", "backward", Add("begin", "Identity", {"zero"}));
    Next(gradient_counter, Add("less", "AddV2", {"step", "k/switch:1"}));
    pop = Add("pop", "TensorListPopBack", {"back/switch:1", "zero"});
    pop.SetAttr("element_dtype", DataType::kInt32);
    Next(gradient_list, pop);
    user = Add("user", "Neg", {"pop:1"});
  }

  Output At(const std::string& name) {
    const size_t colon = name.find(':');
    if (colon == std::string::npos) return graph.FindNode(name);
    return Output(graph.FindNode(name.substr(0, colon)), name[colon + 1] - '0');
  }
  Node Add(const std::string& name, const char* op,
           const std::vector<std::string>& inputs) {
    Node node = graph.AddNode(name, op).value();
    node.SetDevice(kDevice);
    for (const std::string& input : inputs) {
      REQUIRE(node.AddInput(At(input)).ok());
    }
    return node;
  }
  Node Integer(const char* name, int32_t value) {
    Node node = Add(name, "Const", {});
    Constant::Of<int32_t>(Shape({}), {value}).Write(node);
    return node;
  }
  // Returns the Merge.
  Node Variable(const std::string& name, const char* frame, Node first) {
    Node enter = Add(name + "/enter", "Enter", {std::string(first.name())});
    enter.SetAttr("frame_name", frame);
    Node merge = Add(name + "/merge", "Merge", {name + "/enter"});
    Add(name + "/switch", "Switch", {name + "/merge", "cond"});
    return merge;
  }
  void Next(Node merge, Node value) {
    const std::string name = std::string(merge.name()) + "/next";
    Node next = Add(name, "NextIteration", {});
    REQUIRE(next.AddInput(value).ok());
    REQUIRE(merge.AddInput(next).ok());
  }
  void Run(const char* device = "SIM") {
    const PassContext context(device, "", &item);
    REQUIRE(RecomputeLoopValues().Run(graph, context).ok());
    REQUIRE(graph.Check().ok());
  }
  bool has_lists() {
    return graph.has_op("TensorListPushBack") ||
           graph.has_op("TensorListPopBack");
  }

  testing::LeakCheckedFake fake;
  testing::TF_GrapplerItem item;
  Graph graph;
  Node counter, list, push, gradient_list, gradient_counter, pop, user;
};

TEST_CASE("a counter is computed from the gradient's") {
  Loops loops;
  loops.Run();
  CHECK_FALSE(loops.has_lists());
  // n - 1, outside of the loop, minus k.
  const Node result = loops.user.input(0).node;
  CHECK(result.op() == "Sub");
  CHECK(result.input(1) == loops.At("k/switch:1"));
  const Node enter = result.input(0).node;
  REQUIRE(enter.op() == "Enter");
  CHECK(enter.GetAttr<std::string>("frame_name").value() == "backward");
  CHECK(enter.GetAttr<bool>("is_constant").value());
  const Node last = enter.input(0).node;
  CHECK(last.op() == "Sub");
  CHECK(last.input(0).node.name() == "n");
  CHECK(passes_internal::LoopVariable::IsInt32(
      PassContext("SIM", "", &loops.item), last.input(1), 1));
}

TEST_CASE(
    "a value that is the same in all iterations is read before the loop") {
  Loops loops;
  Node same =
      loops.Variable("same", "forward", loops.Add("x", "Neg", {"zero"}));
  loops.Next(same, loops.Add("kept", "Identity", {"same/switch:1"}));
  SUBCASE("the value") {
    REQUIRE(loops.push.SetInput(1, loops.At("same/switch:1")).ok());
    loops.Run();
    CHECK(loops.user.input(0).node.input(0).node.name() == "x");
  }
  SUBCASE("the length of a list") {
    loops.Add("length", "TensorListLength", {"kept"});
    REQUIRE(loops.push.SetInput(1, loops.At("length")).ok());
    loops.Run();
    const Node length = loops.user.input(0).node.input(0).node;
    CHECK(length.op() == "TensorListLength");
    CHECK(length.input(0).node.name() == "x");
  }
  CHECK_FALSE(loops.has_lists());
}

TEST_CASE("a list from which nothing is read is removed") {
  Loops loops;
  REQUIRE(loops.user.SetInput(0, loops.At("zero")).ok());
  REQUIRE(loops.push.SetInput(1, loops.Add("any", "Neg", {"zero"})).ok());
  loops.Run();
  CHECK_FALSE(loops.has_lists());
}

TEST_CASE("lists that are kept") {
  Loops loops;
  const char* device = "SIM";
  SUBCASE("the value is another one") {
    loops.Add("other", "Neg", {"i/switch:1"});
    REQUIRE(loops.push.SetInput(1, loops.At("other")).ok());
  }
  SUBCASE("the first value of the counter is fed") {
    loops.item.nodes_to_preserve = {"start"};
  }
  SUBCASE("the constant before it is fed") {
    loops.item.nodes_to_preserve = {"zero"};
  }
  SUBCASE("the counter starts with 1") {
    REQUIRE(loops.At("start").node.SetInput(0, loops.At("step")).ok());
  }
  SUBCASE("the counter does not grow by 1") {
    REQUIRE(loops.At("more").node.SetInput(1, loops.At("zero")).ok());
  }
  SUBCASE("the gradient has no counter") {
    REQUIRE(loops.At("begin").node.SetInput(0, loops.At("step")).ok());
  }
  SUBCASE("the list is used twice") {
    loops.Add("length", "TensorListLength", {"push"});
  }
  SUBCASE("the list is used after the loop") {
    loops.Add("length", "TensorListLength", {"end"});
  }
  SUBCASE("the list does not begin empty") {
    REQUIRE(loops.At("list/enter").node.SetInput(0, loops.At("zero")).ok());
  }
  SUBCASE("two values per iteration") {
    Node second =
        loops.Add("again", "TensorListPushBack", {"push", "i/switch:1"});
    REQUIRE(loops.At("list/merge/next").node.SetInput(0, second).ok());
  }
  SUBCASE("elements of another type") {
    loops.push.SetAttr("element_dtype", DataType::kFloat);
  }
  SUBCASE("a node to preserve") { loops.item.nodes_to_preserve = {"pop"}; }
  SUBCASE("another device") { device = "OTHER"; }
  loops.Run(device);
  CHECK(loops.graph.has_op("TensorListPushBack"));
  CHECK(loops.user.input(0) == Output(loops.pop, 1));
}

}  // namespace
}  // namespace tfplug::recompute_loop_values_test
