// SPDX-License-Identifier: Apache-2.0
#include "tfplug/passes/reuse_variable_values.h"

#include <doctest/doctest.h>

#include <string>

#include "fusion_graph.h"

namespace tfplug::reuse_variable_values_test {
namespace {

// Float variables on the device, in the body of a function by default.
struct Variables : Fusion {
  explicit Variables(const std::string& text, const std::string& op = "_Arg")
      : inputs("v, w, x = " + op + "()\n") {
    Add(inputs + text);
  }
  // Runs the pass, and returns how the result differs from a text.
  std::string Reused(const std::string& text) {
    Run<ReuseVariableValues>();
    return Compare(inputs + text);
  }

  const std::string inputs;
};

// Returns whether the pass leaves a graph as it is.
bool IsLeftAlone(const std::string& text) {
  Variables v(text);
  const std::string difference = v.Reused(text);
  INFO(difference);
  return difference.empty();
}

TEST_CASE("a graph in which an op changes its input is left alone") {
  CHECK(IsLeftAlone(R"(
      read = ReadVariableOp(v)
      a, b = Exp(read)
      i, rows = Const()
      changed = InplaceAdd(a, i, rows)
      sum = MatMul(changed, b))"));
}

TEST_CASE("reads with the same inputs become one") {
  Variables v(R"(
      first, second = ReadVariableOp(v)
      other = ReadVariableOp(w)
      later = ReadVariableOp(v, ^other)
      sum = MatMul(first, second)
      rest = MatMul(other, later)
      new = MatMul(sum, rest)
      a = AssignVariableOp(v, new, ^second))");
  CHECK(v.Reused(R"(
      first = ReadVariableOp(v)
      other = ReadVariableOp(w)
      later = ReadVariableOp(v, ^other)
      sum = MatMul(first, first)
      rest = MatMul(other, later)
      new = MatMul(sum, rest)
      a = AssignVariableOp(v, new, ^first))") == "");
}

TEST_CASE("equal formulas and constants become one") {
  Variables v(R"(
      r, s = ReadVariableOp(v)
      half, again = 0.5
      third = 0.25
      a = Mul(r, half)
      b = Mul(s, again)
      c = Mul(s, third)
      d = Sqrt(a)
      e = Sqrt(b)
      out = MatMul(d, e)
      end = MatMul(out, c))");
  CHECK(v.Reused(R"(
      r = ReadVariableOp(v)
      half = 0.5
      third = 0.25
      a = Mul(r, half)
      c = Mul(r, third)
      d = Sqrt(a)
      out = MatMul(d, d)
      end = MatMul(out, c))") == "");
}

TEST_CASE("a read after an assignment becomes the assigned value") {
  // The momentum is assigned, read, and used for the weights.
  Variables v(R"(
      m = ReadVariableOp(v)
      new = AddV2(m, x)
      a = AssignVariableOp(v, new)
      again = ReadVariableOp(v, ^a)
      weights = ReadVariableOp(w)
      sub = Sub(weights, again)
      b = AssignVariableOp(w, sub)
      log = Neg(again)
      out = Identity(log, ^b)
      done = NoOp(^again, ^b))");
  CHECK(v.Reused(R"(
      m = ReadVariableOp(v)
      new = AddV2(m, x)
      a = AssignVariableOp(v, new)
      weights = ReadVariableOp(w)
      sub = Sub(weights, new)
      b = AssignVariableOp(w, sub, ^a)
      log = Neg(new)
      out = Identity(log, ^b, ^a)
      done = NoOp(^b, ^a))") == "");
}

TEST_CASE("a node that is not element-wise still runs after the assignment") {
  Variables v(R"(
      a = AssignVariableOp(v, x)
      read = ReadVariableOp(v, ^a)
      twice = MatMul(read, read)
      after = Neg(twice)
      end = NoOp(^after))");
  CHECK(v.Reused(R"(
      a = AssignVariableOp(v, x)
      twice = MatMul(x, x, ^a)
      after = Neg(twice)
      end = NoOp(^after))") == "");
}

TEST_CASE("reads of what another node may have written are left alone") {
  // Something is ordered between the assignment and the read.
  CHECK(IsLeftAlone(R"(
      a = AssignVariableOp(v, x)
      b = AssignVariableOp(v, x:1, ^a)
      read = ReadVariableOp(v, ^a, ^b)
      out = Neg(read))"));
  CHECK(IsLeftAlone(R"(
      a = AssignVariableOp(v, x)
      f = PartitionedCall(v, ^a)
      read = ReadVariableOp(v, ^f)
      out = Neg(read))"));
  // The assignment is that of another variable, an update, or of another type.
  CHECK(IsLeftAlone(R"(
      a = AssignVariableOp(w, x)
      read = ReadVariableOp(v, ^a)
      out = Neg(read))"));
  CHECK(IsLeftAlone(R"(
      a = AssignAddVariableOp(v, x)
      read = ReadVariableOp(v, ^a)
      out = Neg(read))"));
  CHECK(IsLeftAlone(R"(
      a = AssignVariableOp(v, x) {dtype=half}
      read = ReadVariableOp(v, ^a)
      out = Neg(read))"));
  // The handles differ.
  CHECK(IsLeftAlone(R"(
      h = Identity(v)
      a = AssignVariableOp(v, x)
      read = ReadVariableOp(h, ^a)
      out = Neg(read))"));
}

TEST_CASE("a read after an assignment in the same branch is its value") {
  const std::string branch = R"(
      of_v = Switch(v, w)
      h = Identity(of_v:1)
      of_x = Switch(x, w)
      value = Identity(of_x:1)
      a = AssignVariableOp(h, value)
      )";
  Variables v(branch + R"(
      read = ReadVariableOp(h, ^a)
      out = Neg(read)
      end = NoOp(^out))");
  CHECK(v.Reused(branch + R"(
      out = Neg(value)
      end = NoOp(^out, ^a))") == "");
  // The value leaves the branch.
  CHECK(IsLeftAlone(branch + R"(
      read = ReadVariableOp(h, ^a)
      end = Merge(read, of_x))"));
  // What uses the read runs less often.
  CHECK(IsLeftAlone(branch + R"(
      inner = Switch(value, x)
      taken = Identity(inner:1)
      read = ReadVariableOp(h, ^a)
      out = MatMul(read, taken))"));
}

TEST_CASE("a read that the function returns is left alone") {
  CHECK(IsLeftAlone(R"(
      a = AssignVariableOp(v, x)
      read = ReadVariableOp(v, ^a)
      out = _Retval(read))"));
  CHECK(IsLeftAlone(R"(
      a = AssignVariableOp(v, x)
      read = ReadVariableOp(v, ^a)
      twice = Neg(read)
      out = _Retval(twice))"));
}

TEST_CASE("branches, other devices and preserved nodes are left alone") {
  CHECK(IsLeftAlone(R"(
      a = AssignVariableOp(v, x)
      read = ReadVariableOp(v, ^a)
      s = Switch(read, x)
      out = Neg(s))"));
  CHECK(IsLeftAlone(R"(
      r, s = ReadVariableOp(v) @CPU
      out = MatMul(r, s) @CPU)"));
  const std::string text = R"(
      r, s = ReadVariableOp(v)
      out = MatMul(r, s))";
  // A session may fetch or feed the read.
  Variables v(text, "Placeholder");
  v.item.nodes_to_preserve = {"s"};
  CHECK(v.Reused(text) == "");
}

TEST_CASE("reads that the body of a function preserves become NoOps") {
  Variables v(R"(
      r, s = ReadVariableOp(v)
      half, more = 0.5
      a = Mul(r, half)
      b = Mul(s, more)
      new = AddV2(a, b)
      set = AssignVariableOp(v, new, ^r, ^s)
      again = ReadVariableOp(v, ^set)
      c = Neg(again)
      out = Identity(c, ^again))");
  v.item.nodes_to_preserve = {"r", "s", "again", "a", "b", "half", "more"};
  CHECK(v.Reused(R"(
      r = ReadVariableOp(v)
      s = NoOp()
      half, more = 0.5
      a = Mul(r, half)
      b = Mul(r, more)
      new = AddV2(a, b)
      set = AssignVariableOp(v, new, ^r)
      again = NoOp(^set) {!dtype}
      c = Neg(new)
      out = Identity(c, ^set))") == "");
}

TEST_CASE("a preserved result still waits for the assignment") {
  Variables v(R"(
      a = AssignVariableOp(v, x)
      read = ReadVariableOp(v, ^a)
      out = Neg(read))");
  v.item.nodes_to_preserve = {"out"};
  CHECK(v.Reused(R"(
      a = AssignVariableOp(v, x)
      out = Neg(x, ^a))") == "");
}

}  // namespace
}  // namespace tfplug::reuse_variable_values_test
