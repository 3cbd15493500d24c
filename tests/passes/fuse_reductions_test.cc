// SPDX-License-Identifier: Apache-2.0
// Reductions, and the element-wise ops before and after them.

#include <doctest/doctest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "fusion_graph.h"

namespace tfplug::fuse_reductions_test {
namespace {

// Returns the text of a node that converts another one.
std::string Converted(const std::string& name, const std::string& from,
                      const std::string& type) {
  return name + " = " +
         (type == "float"
              ? "Identity(" + from + ")\n"
              : "Cast(" + from + ") {SrcT=float, DstT=" + type + "}\n");
}

TEST_CASE("a reduction computes its input") {
  for (const std::string op : {"Sum", "Mean", "Prod", "Max", "Min"}) {
    for (const std::string type : {"float", "half", "int8"}) {
      for (const bool is_one_op : {false, true}) {
        for (const std::string axes : {"[0]", "[-1]", "[0, 1]", "[]"}) {
          CAPTURE(op);
          CAPTURE(type);
          CAPTURE(is_one_op);
          CAPTURE(axes);
          Fusion f;
          f.Feed("x: float[2,3] = [-1.5, 0, 1, 2.25, -3, 4]");
          f.Add(Converted("narrow", "x", type), type);
          f.Add(absl::StrCat(
                    is_one_op ? "" : "square = Square(narrow)\n", "end: ", type,
                    "[2,3] = ",
                    is_one_op ? "Square(narrow)" : "Mul(square, narrow)"),
                type);
          f.Add(
              absl::StrCat("axes: int32 = ", axes, "\nreduce = ", op,
                           "(end, axes)", is_one_op ? " {keep_dims=true}" : "",
                           "\nout = Identity(reduce)"),
              type);
          const std::string ops = f.FuseAndCompare();
          const bool reduces_last = axes == "[-1]" || axes == "[0, 1]";
          CHECK((ops == kFusedReduceOp) == reduces_last);
          CHECK(num_maps == (reduces_last ? 0 : 1));
          CHECK(num_reductions == 1);
        }
      }
    }
  }
}

TEST_CASE("a reduction broadcasts the inputs of what it reduces") {
  Fusion f;
  f.Feed(R"(x: float[2,3] = [-1, 0, 1, 2, -3, 4]
            row: float[3] = [1, 2, 3]
            column: float[2,1] = [5, 6]
            sums: float[2,1] = [30, 33]
            yes: bool = 1)");
  f.Add(R"(
      product = Mul(row, column)
      difference = Sub(product, x)
      last: int32[1] = [-1]
      sum = Sum(difference, last) {keep_dims=true}
      less = Less(x, sum)
      axes: int32[2] = [0, -1]
      all = All(less, axes) {!T}
      out = Identity(all) {T=bool})");
  CHECK(f.Fuse() == absl::StrCat(kFusedReduceOp, " ", kFusedReduceOp));
  CHECK(f.Result("sum/fused") == f.Result("sums"));
  CHECK(f.Result("out") == f.Result("yes"));
}

TEST_CASE("a reduction computes the ops after it") {
  for (const std::string op : {"Sum", "Mean", "Prod", "Max", "Min"}) {
    for (const std::string type : {"float", "half", "int8"}) {
      for (const bool keep_dims : {false, true}) {
        for (const bool is_one_op : {false, true}) {
          for (const std::string axes :
               {"[0]", "[-1]", "[0, 1, 2]", "[0, 2]", "[]"}) {
            CAPTURE(op);
            CAPTURE(type);
            CAPTURE(keep_dims);
            CAPTURE(is_one_op);
            CAPTURE(axes);
            Fusion f;
            f.Feed(R"(
                x: float[2,3,2] = [-1.5, 0, 1, 2.25, -3, 4,
                                   7, 1.25, -2, 3, 1, -4]
                y: float[1] = [1.375])");
            f.Add(Converted("narrow_x", "x", type) +
                      Converted("narrow_y", "y", type),
                  type);
            f.Add(absl::StrCat("axes: int32 = ", axes, "\nreduce = ", op,
                               "(narrow_x, axes)",
                               keep_dims ? " {keep_dims=true}" : "",
                               "\nsquare = Square(reduce)"),
                  type);
            f.Add(is_one_op ? "out = Identity(square)" : R"(
                      sum = AddV2(narrow_y, square)
                      last = Mul(reduce, sum)
                      out2 = Identity(sum)
                      out = Identity(last))",
                  type);
            const std::string ops = f.FuseAndCompare();
            CHECK(absl::StrContains(ops, kFusedReduceOp));
            CHECK(!absl::StrContains(ops, kFusedMapOp));
            CHECK(!f["reduce"]);
            CHECK(num_reductions == 1);
            // A scalar is broadcast to [1]. Casts are Maps as well.
            if (type == "float") {
              const bool is_broadcast = axes == "[0, 1, 2]" && !keep_dims;
              CHECK(num_maps == (is_broadcast && !is_one_op ? 1 : 0));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a reduction computes the ops before and after it") {
  Fusion f;
  f.Feed(R"(x: float[2,3] = [-1, 0, 1, 2, -3, 4]
            row: float[3] = [1, 2, 3]
            column: float[2,1] = [5, 6])");
  f.Add(R"(
      product = Mul(row, x)
      last: int32[1] = [-1]
      mean = Mean(product, last) {keep_dims=true}
      difference = Sub(column, mean)
      less = Less(difference, column)
      axes: int32[2] = [0, -1]
      all = All(less, axes) {!T}
      not = LogicalNot(all) {!T}
      out = Identity(difference)
      out2 = Identity(not) {T=bool})");
  CHECK(f.FuseAndCompare() ==
        absl::StrCat(kFusedReduceOp, " ", kFusedReduceOp));
  CHECK(num_reductions == 2);
  CHECK(num_maps == 0);
}

TEST_CASE("a reduction between two others belongs to one of them") {
  Fusion f;
  f.Feed("x: float[2,3] = [-1, 0, 1, 2, -3, 4]");
  f.Add(R"(
      last: int32[1] = [-1]
      sum = Sum(x, last)
      square: float[2] = Square(sum)
      first: int32[1] = [0]
      total = Sum(square, first)
      root = Sqrt(total)
      out = Identity(root))");
  CHECK(f.FuseAndCompare() == absl::StrCat("Sum ", kFusedReduceOp));
}

TEST_CASE("a reduction of nothing and the ops after it") {
  for (const int64_t rows : {0, 2}) {
    Fusion f;
    f.Feed(absl::StrCat("x: float[", rows, ",0] = []"));
    f.Add(R"(
        last: int32[1] = [-1]
        max = Max(x, last)
        tanh = Tanh(max)
        out = Identity(tanh))");
    CHECK(f.FuseAndCompare() == kFusedReduceOp);
  }
}

TEST_CASE("a reduction with too many operands stays apart") {
  Fusion f;
  f.Feed("x: float[2,3] = [-1, 0, 1, 2, -3, 4]");
  f.Add(R"(
      last: int32[1] = [-1]
      n0 = Sum(x, last))");
  for (int i = 0; i < 14; ++i) {
    f.Feed(absl::StrCat("y", i, ": float[2] = [1, ", i, "]"));
    f.Add(absl::StrCat("n", i + 1, " = AddV2(n", i, ", y", i, ")"));
  }
  f.Add("out = Identity(n14)");
  CHECK(f.FuseAndCompare() == absl::StrCat("Sum ", kFusedMapOp));
}

TEST_CASE("ops that a reduction does not compute") {
  Fusion f;
  std::string sum = "sum = Sum(x, last)", tanh = "tanh = Tanh(sum)";
  SUBCASE("with another user") { tanh += "\nout2 = Identity(sum)"; }
  SUBCASE("with a control user") { tanh += "\nafter = NoOp(^sum)"; }
  SUBCASE("that is preserved") { f.item.nodes_to_preserve = {"sum"}; }
  SUBCASE("with the label of a kernel") { sum += R"( {_kernel="mine"})"; }
  SUBCASE("on another device") { sum += " @CPU"; }
  SUBCASE("that is broadcast") {
    sum = "sum: float[1,2] = Sum(x, last)";
    tanh = "tanh: float[3,2] = Tanh(sum)";
  }
  f.Add("x = Placeholder()\nlast: int32[1] = [-1]\nout = Identity(tanh)\n" +
        sum + "\n" + tanh);
  CHECK(!absl::StrContains(f.Fuse(), "Tfplug"));
}

TEST_CASE("what a reduction does not compute") {
  Fusion f;
  f.item.nodes_to_preserve = {"sum4"};
  f.Add(R"(
      x = Placeholder()
      first: int32[1] = [0]
      last: int32[1] = [-1]
      used, ordered, kept, label, unknown = Exp(x)
      other = Exp(x) @CPU
      sum1 = Sum(used, last)
      out1 = Identity(used)
      sum2 = Sum(ordered, last)
      out2 = Identity(sum2, ^ordered)
      sum3 = Sum(other, last)
      sum4 = Sum(kept, last)
      sum5 = Sum(label, last) {_kernel="mine"}
      sum6 = Sum(x, last)
      sum7 = Sum(unknown, first))");
  CHECK(!absl::StrContains(f.Fuse(), "Tfplug"));
}

TEST_CASE("a reduction keeps control edges and the shape") {
  Fusion f;
  f.Add(R"(
      x = Placeholder()
      before = NoOp()
      exp = Exp(x, ^before)
      last: int32[1] = [-1]
      sum: float[] = Sum(exp, last, ^before)
      after = NoOp(^sum))");
  f.Fuse();
  CHECK(f.Compare(R"(
      sum/fused = TfplugFusedReduceV3(x, last, ^before)
      after = NoOp(^sum/fused))") == "");
  CHECK(f.ShapeAfter("sum/fused") == "[]");
}

TEST_CASE("a reduction and the ops after it keep control edges and the shape") {
  Fusion f;
  f.Add(R"(
      x = Placeholder()
      before, early = NoOp()
      last: int32[1] = [-1]
      sum = Sum(x, last, ^before)
      tanh: float[] = Tanh(sum, ^early)
      after = NoOp(^tanh)
      out = Identity(tanh))");
  f.Fuse();
  CHECK(f.Compare(R"(
      tanh/fused/reduce = TfplugFusedReduceV3(x, last, ^before, ^early)
      after = NoOp(^tanh/fused/reduce)
      out = Identity(tanh/fused/reduce))") == "");
  CHECK(f.ShapeAfter("tanh/fused/reduce") == "[]");
}

}  // namespace
}  // namespace tfplug::fuse_reductions_test
