// SPDX-License-Identifier: Apache-2.0
#include "tfplug/passes/keep_optionals_on_host.h"

#include <doctest/doctest.h>
#include <tfplug/graph_pass.h>

#include <string>
#include <vector>

#include "leak_checked_fake.h"
#include "passes/first_passes.h"
#include "tfplug/testing/graph_text.h"

namespace tfplug::keep_optionals_on_host_test {
namespace {

constexpr char kAttrs[] = "T=variant";

// Returns how a graph with an optional differs from `expected` after the pass.
std::string After(const std::string& before, const std::string& expected,
                  const std::vector<std::string>& preserved = {}) {
  const testing::LeakCheckedFake fake;
  Graph graph;
  REQUIRE(testing::AddNodes(graph,
                            before + "\n an_optional = OptionalNone() @CPU",
                            {"SIM", kAttrs, nullptr})
              .ok());
  testing::TF_GrapplerItem item;
  item.nodes_to_preserve = preserved;
  const PassContext context("SIM", "", &item);
  const absl::Status status = KeepOptionalsOnHost().Run(graph, context);
  REQUIRE_MESSAGE(status.ok(), std::string(status.message()));
  REQUIRE(graph.Check().ok());
  return testing::CompareGraph(graph, expected, {"SIM", kAttrs, nullptr});
}

std::string Unchanged(const std::string& graph,
                      const std::vector<std::string>& preserved = {}) {
  return After(graph, graph, preserved);
}

// Replaces each FROM of a text.
std::string With(std::string text, const std::string& from,
                 const std::string& to) {
  for (size_t at = text.find(from); at != text.npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// A loop carries the next element of a dataset. DEVICE is the device of the
// nodes that only carry it.
constexpr char kLoop[] = R"(
    first = IteratorGetNextAsOptional(iterator) @CPU
    iterator = Placeholder() @CPU
    more = LoopCond(has) @CPU
    enter = Enter(first)DEVICE
    merge = Merge(enter, next)DEVICE
    has = OptionalHasValue(merge) @CPU
    switch = Switch(merge, more)DEVICE
    body = Identity(switch:1)DEVICE
    element = OptionalGetValue(body) @CPU
    second = IteratorGetNextAsOptional(iterator) @CPU
    branch = Switch(second, has)DEVICE
    join = Merge(branch, branch:1)DEVICE
    next = NextIteration(join)DEVICE
    exit = Exit(switch)DEVICE
    result = _Retval(exit))";

TEST_CASE("nodes that carry optionals of the CPU move there") {
  CHECK(After(With(kLoop, "DEVICE", ""), With(kLoop, "DEVICE", " @CPU")) == "");
}

TEST_CASE("they lose the nodes of the device that they were colocated with") {
  CHECK(After(R"(
      some = OptionalNone() @CPU
      same = Identity(some) {_class=["loc:@x"]}
      has = OptionalHasValue(same) @CPU)",
              R"(
      some = OptionalNone() @CPU
      same = Identity(some) @CPU {!_class}
      has = OptionalHasValue(same) @CPU)") == "");
}

TEST_CASE("an optional that an op of the device makes or reads stays there") {
  const std::string loop = With(kLoop, "DEVICE", "");
  for (const char* node : {
           "other = OptionalHasValue(join)",
           "other = StatefulPartitionedCall(body)",
           "other = TensorListPushBack(list, body)\n list = Placeholder()",
           "other = IdentityN(enter)",
       }) {
    CAPTURE(node);
    CHECK(Unchanged(loop + "\n" + node) == "");
  }
  CHECK(Unchanged(With(loop, "iterator) @CPU", "iterator)")) == "");
}

TEST_CASE(
    "lists, and optionals of unknown origin that nobody makes here, stay") {
  CHECK(Unchanged(R"(
      list = EmptyTensorList() @CPU
      same = Identity(list)
      length = TensorListLength(same) @CPU)") == "");
}

TEST_CASE("arguments, results and preserved nodes stay") {
  const std::string graph = R"(
      some = OptionalNone() @CPU
      argument = _Arg()
      join = Merge(argument, some)DEVICE
      kept = Identity(join)
      result = _Retval(kept))";
  CHECK(After(With(graph, "DEVICE", ""), With(graph, "DEVICE", " @CPU"),
              {"kept"}) == "");
}

TEST_CASE("nodes of another device stay") {
  CHECK(Unchanged(R"(
      some = OptionalNone() @CPU
      same = Identity(some) @OTHER
      has = OptionalHasValue(same) @CPU)") == "");
}

// ---- Control edges

TEST_CASE("the device waits for the CPU by a value in host memory") {
  CHECK(After(R"(
      a = NoOp() @CPU
      b = NoOp(^a)
      c = NoOp(^a)
      d = NoOp(^a) @CPU)",
              R"(
      a = NoOp() @CPU
      a/done: int32 = 0 (^a) @CPU
      a/seen = Identity(a/done) {T=int32}
      b = NoOp(^a/seen)
      c = NoOp(^a/seen)
      d = NoOp(^a) @CPU)") == "");
}

TEST_CASE("a graph without optionals is left alone") {
  const char kGraph[] = "a = NoOp() @CPU\n b = NoOp(^a) @SIM";
  Graph graph;
  REQUIRE(testing::AddNodes(graph, kGraph).ok());
  REQUIRE(
      KeepOptionalsOnHost().Run(graph, PassContext("SIM", "", nullptr)).ok());
  CHECK(testing::CompareGraph(graph, kGraph) == "");
}

TEST_CASE("each device waits by a value of its own") {
  CHECK(After(R"(
      a = NoOp() @CPU
      b = NoOp(^a)
      c = NoOp(^a) @/device:SIM:1)",
              R"(
      a = NoOp() @CPU
      a/done: int32 = 0 (^a) @CPU
      a/seen = Identity(a/done) @/device:SIM:1 {T=int32}
      a/done_1: int32 = 0 (^a) @CPU
      a/seen_1 = Identity(a/done_1) {T=int32}
      b = NoOp(^a/seen_1)
      c = NoOp(^a/seen) @/device:SIM:1)") == "");
}

TEST_CASE("what carries an optional on the CPU need not wait for kernels") {
  CHECK(After(R"(
      updates = NoOp()
      some = OptionalNone() @CPU
      next = NextIteration(some, ^updates) @CPU
      all = NoOp(^updates) @CPU
      same = Identity(some, ^all) @CPU)",
              R"(
      updates = NoOp()
      updates/done: int32 = 0 (^updates)
      updates/seen = Identity(updates/done) @CPU {T=int32}
      some = OptionalNone() @CPU
      next = NextIteration(some, ^updates/seen) @CPU
      all = NoOp(^updates/seen) @CPU
      same = Identity(some, ^all) @CPU)") == "");
}

TEST_CASE("the CPU knows the branch from a value in host memory") {
  const std::string graph = R"(
      less = Less() {T=int32}
      branch = Switch(less, less) {T=bool}
      taken = Identity(branch:1) {T=bool}
      yes: bool = 1 (^taken)
      counter = Merge(less) {T=int32}
      x = Placeholder() @CPU)";
  for (const std::string from : {"taken", "yes", "counter"}) {
    CAPTURE(from);
    CHECK(After(With(graph + R"(
      user = OptionalHasValue(x, ^FROM) @CPU)",
                     "FROM", from),
                With(graph + R"(
      user = OptionalHasValue(x, ^FROM/seen) @CPU
      FROM/done: int32 = 0 (^FROM)
      FROM/seen = Identity(FROM/done) @CPU {T=int32})",
                     "FROM", from)) == "");
  }
  // CopyOnStream ran before.
  const std::string copied = R"(
      less = Less() {T=int32}
      copy = TfplugToDeviceV1(less) {T=bool}
      branch = Switch(copy, less) {T=bool}
      taken = Identity(branch:1) {T=bool}
      x = Placeholder() @CPU)";
  CHECK(
      After(copied + "\n user = OptionalHasValue(x, ^taken) @CPU", copied + R"(
      user = OptionalHasValue(x, ^taken/seen) @CPU
      taken/done: int32 = 0 (^taken)
      taken/seen = Identity(taken/done) @CPU {T=int32})") == "");
}

TEST_CASE("the CPU still waits for kernels that something else asked to") {
  for (const char* text : {
           "from = NoOp()\n to = Timestamp(^from) @CPU",
           "from = MatMul(x, x) {T=float}\n to = Timestamp(^from) @CPU",
           "from = Identity(x) {T=float}\n to = Timestamp(^from) @CPU",
           "from: float = 1 (^x)\n to = Timestamp(^from) @CPU",
           "from = Identity(s:1) {T=bool}\n to = Timestamp(^from) @CPU"
           "\n s = Switch(x, y) {T=bool}\n y = Placeholder()",
           "from = NoOp()\n to = NoOp(^from) @CPU",
           "from = NoOp()\n to = NoOp(^from) @CPU\n"
           "last = Timestamp(^to) @CPU",
           "from = NoOp()\n to = Identity(c, ^from) @CPU {T=float}\n"
           "c: float = 1 @CPU",
       }) {
    CAPTURE(text);
    CHECK(Unchanged(std::string(text) + "\n x = Placeholder()") == "");
  }
}

TEST_CASE("a preserved NoOp still waits for kernels") {
  const std::string graph = R"(
      from = NoOp()
      to = NoOp(^from) @CPU
      some = OptionalNone() @CPU
      same = Identity(some, ^to) @CPU)";
  CHECK(Unchanged(graph, {"to"}) == "");
  CHECK(Unchanged(graph) != "");
}

TEST_CASE("the pass is among the default passes, except in 2.17") {
  CheckFirstExceptIn217("tfplug::KeepOptionalsOnHost",
                        &OptimizerSettings::keep_optionals_on_host);
}

}  // namespace
}  // namespace tfplug::keep_optionals_on_host_test
