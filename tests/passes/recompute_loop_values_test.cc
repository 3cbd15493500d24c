// SPDX-License-Identifier: Apache-2.0
#include "tfplug/passes/recompute_loop_values.h"

#include <doctest/doctest.h>
#include <tfplug/graph_pass.h>

#include <string>

#include "absl/strings/substitute.h"
#include "leak_checked_fake.h"
#include "passes/first_passes.h"
#include "tfplug/testing/graph_text.h"

namespace tfplug::recompute_loop_values_test {
namespace {

// A loop that pushes `value()` onto a list, and one that pops it and uses it in
// `user`. Both have a counter.
struct Loops {
  Loops() {
    Add(R"(
        zero: int32 = 0
        step: int32 = 1
        cond = LoopCond()
        start = Identity(zero)
        more = AddV2(i/switch:1, step)
        n = Exit(i/switch)
        empty = EmptyTensorList(zero, zero)
        push = TensorListPushBack(list/switch:1, i/switch:1) {
            element_dtype=int32}
        end = Exit(list/switch)
        begin = Identity(zero)
        less = AddV2(step, k/switch:1)
        pop = TensorListPopBack(back/switch:1, zero) {element_dtype=int32}
        user = Neg(pop:1))" +
        Variable("i", "forward", "start", "more") +
        Variable("list", "forward", "empty", "push") +
        Variable("back", "backward", "end", "pop") +
        Variable("k", "backward", "begin", "less"));
    push = graph.FindNode("push");
    pop = graph.FindNode("pop");
    user = graph.FindNode("user");
  }

  Output At(const std::string& name) {
    const size_t colon = name.find(':');
    if (colon == std::string::npos) return graph.FindNode(name);
    return Output(graph.FindNode(name.substr(0, colon)), name[colon + 1] - '0');
  }
  Node Add(const std::string& text) {
    const auto last = testing::AddNodes(graph, text, {"SIM", "", nullptr});
    REQUIRE_MESSAGE(last.ok(), last.status().ToString());
    return *last;
  }
  // Returns the text of a loop's variable.
  static std::string Variable(const std::string& name, const char* frame,
                              const char* first, const char* next) {
    return absl::Substitute(R"(
        $0/enter = Enter($2) {frame_name="$1"}
        $0/merge = Merge($0/enter, $0/merge/next)
        $0/switch = Switch($0/merge, cond)
        $0/merge/next = NextIteration($3))",
                            name, frame, first, next);
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
  Node push, pop, user;
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
  // Both loops may be in a loop, to which the constant then belongs.
  REQUIRE(last.input(1).node.num_controls() == 1);
  CHECK((*last.input(1).node.controls().begin()).name() == "n");
}

TEST_CASE(
    "a value that is the same in all iterations is read before the loop") {
  Loops loops;
  loops.Add("x = Neg(zero)\nkept = Identity(same/switch:1)" +
            Loops::Variable("same", "forward", "x", "kept"));
  SUBCASE("the value") {
    REQUIRE(loops.push.SetInput(1, loops.At("same/switch:1")).ok());
    loops.Run();
    CHECK(loops.user.input(0).node.input(0).node.name() == "x");
  }
  SUBCASE("the length of a list") {
    const Node kept = loops.Add("length = TensorListLength(kept)");
    REQUIRE(loops.push.SetInput(1, kept).ok());
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
  REQUIRE(loops.push.SetInput(1, loops.Add("any = Neg(zero)")).ok());
  loops.Run();
  CHECK_FALSE(loops.has_lists());
}

TEST_CASE("a list that an Identity passes on is removed") {
  Loops loops;
  REQUIRE(
      loops.push.SetInput(0, loops.Add("same = Identity(list/switch:1)")).ok());
  loops.Run();
  CHECK_FALSE(loops.has_lists());
}

TEST_CASE("lists that are kept") {
  Loops loops;
  const char* device = "SIM";
  SUBCASE("the value is another one") {
    REQUIRE(loops.push.SetInput(1, loops.Add("other = Neg(i/switch:1)")).ok());
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
    loops.Add("length = TensorListLength(push)");
  }
  SUBCASE("the list before the push is used twice") {
    const Node same = loops.Add("same = Identity(list/switch:1)");
    REQUIRE(loops.push.SetInput(0, same).ok());
    loops.Add("length = TensorListLength(same)");
  }
  SUBCASE("the list is used after the loop") {
    loops.Add("length = TensorListLength(end)");
  }
  SUBCASE("the list does not begin empty") {
    REQUIRE(loops.At("list/enter").node.SetInput(0, loops.At("zero")).ok());
  }
  SUBCASE("two values per iteration") {
    const Node second =
        loops.Add("again = TensorListPushBack(push, i/switch:1)");
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

TEST_CASE("the pass is among the default passes, except in 2.17") {
  CheckFirstExceptIn217("tfplug::RecomputeLoopValues",
                        &OptimizerSettings::recompute_loop_values);
}

}  // namespace
}  // namespace tfplug::recompute_loop_values_test
