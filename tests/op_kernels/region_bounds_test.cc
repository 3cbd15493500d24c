// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "region_graph.h"

// These tests show where regions end.
namespace tfplug::region_bounds_test {
namespace {

using region_test::RegionGraph;

TEST_CASE("an op between two others prevents a cycle") {
  RegionGraph g;
  g.Feed("x: float[2] = [1, 2]");
  g.Add(R"(
      a = Tanh(x)
      b = Neg(a)
      own = Elu(b)
      c = AddV2(b, own)
      d = Neg(c)
      out = Elu(d))");
  CHECK(g.CompileAndCompare() == 2);
}

TEST_CASE("control edges keep their order") {
  RegionGraph g;
  g.Feed("x: float[2] = [1, 2]");
  g.Add(R"(
      first = Elu(x)
      a = Tanh(x, ^first)
      b = Neg(x, ^a)
      later = Elu(x, ^b)
      one: int32 = 1 (^later)
      c = ExpandDims(x, one)
      d = Neg(c)
      out = Elu(b)
      out2 = Elu(d))");
  CHECK(g.Compile() == 2);
  g.Results();
  const auto at = [&](const std::string& name) {
    return std::find(g.order.begin(), g.order.end(), name) - g.order.begin();
  };
  CHECK(at("first") < at("b/region"));
  CHECK(at("b/region") < at("later"));
  CHECK(at("later") < at("d/region"));
}

// One region with nodes of both sections would wait for both locks, and the second is free
// only after the first section's results.
TEST_CASE("nodes that wait for different locks are in different regions") {
  RegionGraph g;
  g.Add(R"(
      x, mutex = Placeholder()
      lock = MutexLock(mutex)
      a = Tanh(x, ^lock)
      b = Neg(a)
      kept = Consume(lock, ^b)
      lock2 = MutexLock(mutex)
      a2 = Tanh(x, ^lock2)
      b2 = Neg(a2)
      kept2 = Consume(lock2, ^b2)
      out = Elu(b)
      out2 = Elu(b2))");
  CHECK(g.Compile() == 2);
  // Nodes that follow one lock, a function that may lock, or none, are apart, too.
  g.Reset();
  g.Add(R"(
      x, mutex = Placeholder()
      lock = MutexLock(mutex)
      called = StatefulPartitionedCall(x)
      a = Tanh(x)
      b = Neg(a)
      c = Tanh(x, ^lock)
      d = Neg(c)
      e = Tanh(called)
      f = Neg(e)
      out = Elu(b)
      out2 = Elu(d)
      out3 = Elu(f))");
  CHECK(g.Compile() == 3);
}

TEST_CASE("a constant that is ordered after a node does not divide a region") {
  RegionGraph g;
  g.Feed("x: float[2] = [1, 2]");
  g.Add(R"(
      before = Elu(x)
      a = Tanh(x, ^before)
      half: float = 0.5 (^a)
      own = Elu(half)
      b = Mul(a, half)
      out = Elu(b))");
  CHECK(g.CompileAndCompare() == 1);
  // The users of the constant still run after the node.
  REQUIRE(g["own"].num_controls() == 1);
  CHECK(g["own"].control(0).op() == kRegionOp);
  // In a branch, the constant runs if the node does.
  g.Reset();
  g.Add(R"(
      x, pred = Placeholder()
      switch = Switch(x, pred)
      a = Tanh(switch:1)
      half: float = 0.5 (^a)
      b = Mul(a, half)
      out = Elu(b))");
  CHECK(g.Compile() == 0);
  CHECK(g["half"].num_controls() == 1);
  // One that is fetched, or run by name, still waits for what it waited for.
  g.Reset();
  g.item.nodes_to_preserve = {"half"};
  g.Add(R"(
      x = Placeholder()
      a = Tanh(x)
      half: float = 0.5 (^a)
      b = Mul(a, half)
      out = Elu(b))");
  g.Compile();
  CHECK(g["half"].num_controls() == 1);
}

TEST_CASE("branches and loops bound regions") {
  RegionGraph g;
  g.Add(R"(
      x, pred = Placeholder()
      a = Neg(x)
      b = Tanh(a)
      switch = Switch(b, pred)
      yes = Neg(switch:1)
      yes2 = Tanh(yes)
      no = Square(switch)
      no2 = Neg(no)
      merge = Merge(yes2, no2)
      c = Neg(merge)
      d = Tanh(c)
      out = Elu(d))");
  CHECK(g.Compile() == 4);
}

TEST_CASE("a copy to the other kind of memory bounds regions") {
  RegionGraph g;
  g.Add(R"(
      x = Placeholder()
      perm: int32[1] = [0]
      a = Tanh(x)
      shape = Shape(a)
      b = Transpose(shape, perm) {T=int32}
      c = Transpose(b, perm) {T=int32}
      out = Identity(c) {T=int32})");
  // Shape leaves its result in host memory; TensorFlow copies it for Transpose.
  CHECK(g.Compile() == 2);
}

// What leaves the loop comes from `mask` in the second iteration, although no
// edge leads there but the one that closes the loop.
TEST_CASE("a path through an iteration of a loop prevents a cycle") {
  RegionGraph g;
  g.Add(R"(
      x, limit = Placeholder()
      enter = Enter(x) {frame_name="loop"}
      merge = Merge(enter, next)
      cond = LoopCond(limit)
      switch = Switch(merge, cond)
      exit = Exit(switch)
      after = Neg(exit)
      after2 = Tanh(after)
      out = Elu(after2)
      own1 = Elu(x)
      own2 = Elu(own1)
      own3 = Elu(own2)
      own4 = Elu(own3)
      mask = Neg(own4)
      mask2 = Tanh(mask)
      out2 = Elu(mask2)
      enter_mask = Enter(mask) {frame_name="loop", is_constant=true}
      product = Mul(switch:1, enter_mask)
      next = NextIteration(product))");
  CHECK(g.Compile() == 2);
  CHECK_FALSE(g["mask"]);
  CHECK_FALSE(g["after"]);
}

TEST_CASE("what a loop's counter reaches is left out") {
  RegionGraph g;
  g.Add(R"(
      x, i, i2, limit = Placeholder()
      one: int32[1] = [1]
      enter = Enter(x) {frame_name="loop"}
      merge = Merge(enter, next)
      counter = Enter(i) {frame_name="loop"}
      j = Merge(counter, next_j) {T=int32}
      cond = LoopCond(limit)
      switch = Switch(merge, cond)
      j_switch = Switch(j, cond) {T=int32}
      j_next = Maximum(j_switch:1, one) {T=int32}
      next_j = NextIteration(j_next) {T=int32}
      a = Tanh(switch:1)
      shape = Shape(a)
      b = Reshape(a, shape)
      c = Reshape(b, j_switch:1)
      d = ExpandDims(c, one)
      e = Tanh(d)
      next = NextIteration(e)
      out = Elu(switch)
      y = Tanh(x)
      z = Reshape(y, i2)
      out2 = Elu(z))");
  CHECK(g.Compile() == 3);
  // Outside of loops, such a value is compared before a record is repeated.
  for (const char* name : {"a", "shape", "b", "d", "e", "y", "z"}) {
    CHECK_MESSAGE(!g[name], name);
  }
  for (const char* name : {"j_next", "c"}) CHECK_MESSAGE(g[name], name);
}

}  // namespace
}  // namespace tfplug::region_bounds_test
