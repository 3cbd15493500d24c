// SPDX-License-Identifier: Apache-2.0
// Reductions, and the element-wise ops before and after them.

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fusion_graph.h"

namespace tfplug::fuse_reductions_test {
namespace {

TEST_CASE("a reduction computes its input") {
  for (const std::string op : {"Sum", "Mean", "Prod", "Max", "Min"}) {
    for (const DataType type :
         {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
      for (const bool is_one_op : {false, true}) {
        for (const std::vector<int32_t>& axes :
             std::vector<std::vector<int32_t>>{{0}, {-1}, {0, 1}, {}}) {
          CAPTURE(op);
          CAPTURE(static_cast<int>(type));
          CAPTURE(is_one_op);
          CAPTURE(axes.size());
          Fusion f;
          f.Feed("x", {2, 3}, {-1.5, 0, 1, 2.25, -3, 4});
          f.Feed("y", {2, 3}, {1, 7, -2, 1.125, 3, -5});
          std::string input = "x";
          if (type != DataType::kFloat) {
            f.Add("narrow", "Cast", {"x"}, type)
                .SetAttr("SrcT", DataType::kFloat);
            input = "narrow";
          }
          if (is_one_op) {
            f.Add("end", "Square", {input}, type);
          } else {
            f.Add("square", "Square", {input}, type);
            f.Add("end", "Mul", {"square", input}, type);
          }
          f.Reduce("reduce", op, "end", axes, is_one_op).SetAttr("T", type);
          f.Add("out", "Identity", {"reduce"}, type);
          f.State("end", PartialShape(Shape({2, 3})));
          const std::string expected = f.Result("out");
          f.Fuse();
          const bool reduces_last = !axes.empty() && axes.back() != 0;
          CHECK((f.Ops() == absl::StrCat("Identity ", kFusedReduceOp)) ==
                reduces_last);
          num_maps = num_reductions = 0;
          CHECK(f.Result("out") == expected);
          CHECK(num_maps == (reduces_last ? 0 : 1));
          CHECK(num_reductions == 1);
        }
      }
    }
  }
}

TEST_CASE("a reduction broadcasts the inputs of what it reduces") {
  Fusion f;
  f.Feed("x", {2, 3}, {-1, 0, 1, 2, -3, 4});
  f.Feed("row", {3}, {1, 2, 3});
  f.Feed("column", {2, 1}, {5, 6});
  f.Add("product", "Mul", {"row", "column"});
  f.Add("difference", "Sub", {"product", "x"});
  f.Reduce("sum", "Sum", "difference", {-1}, true);
  f.Add("less", "Less", {"x", "sum"});
  f.Reduce("all", "All", "less", {0, -1});
  f.Add("out", "Identity", {"all"}, DataType::kBool);
  f.Fuse();
  CHECK(f.Ops() ==
        absl::StrCat("Identity ", kFusedReduceOp, " ", kFusedReduceOp));
  const std::string sums = f.Result("sum/fused");
  REQUIRE(sums.substr(0, 4) == "2,1:");
  float values[2];
  std::memcpy(values, sums.data() + 4, sizeof(values));
  CHECK(values[0] == 30);
  CHECK(values[1] == 33);
  CHECK(f.Result("out") == absl::StrCat(":", std::string(1, 1)));
}

TEST_CASE("a reduction computes the ops after it") {
  for (const std::string op : {"Sum", "Mean", "Prod", "Max", "Min"}) {
    for (const DataType type :
         {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
      for (const bool keep_dims : {false, true}) {
        for (const bool is_one_op : {false, true}) {
          for (const std::vector<int32_t>& axes :
               std::vector<std::vector<int32_t>>{
                   {0}, {-1}, {0, 1, 2}, {0, 2}, {}}) {
            CAPTURE(op);
            CAPTURE(static_cast<int>(type));
            CAPTURE(keep_dims);
            CAPTURE(is_one_op);
            CAPTURE(absl::StrJoin(axes, ","));
            Fusion f;
            f.Feed("x", {2, 3, 2},
                   {-1.5, 0, 1, 2.25, -3, 4, 7, 1.25, -2, 3, 1, -4});
            f.Feed("y", {1}, {1.375f});
            std::string x = "x", y = "y";
            if (type != DataType::kFloat) {
              for (std::string* input : {&x, &y}) {
                f.Add(*input + "/narrow", "Cast", {*input}, type)
                    .SetAttr("SrcT", DataType::kFloat);
                *input += "/narrow";
              }
            }
            f.Reduce("reduce", op, x, axes, keep_dims).SetAttr("T", type);
            std::string last = "square";
            f.Add("square", "Square", {"reduce"}, type);
            if (!is_one_op) {
              f.Add("sum", "AddV2", {y, "square"}, type);
              f.Add("last", "Mul", {"reduce", "sum"}, type);
              f.Add("out2", "Identity", {"sum"}, type);
              last = "last";
            }
            f.Add("out", "Identity", {last}, type);
            const std::string expected = f.Result("out");
            const std::string sum = is_one_op ? "" : f.Result("out2");
            f.Fuse();
            CHECK(absl::StrContains(f.Ops(), kFusedReduceOp));
            CHECK(!absl::StrContains(f.Ops(), kFusedMapOp));
            CHECK(!f["reduce"]);
            num_maps = num_reductions = 0;
            CHECK(f.Result("out") == expected);
            if (!is_one_op) CHECK(f.Result("out2") == sum);
            CHECK(num_reductions == 1);
            // A scalar is broadcast to [1]. Casts are Maps as well.
            if (type == DataType::kFloat) {
              CHECK(num_maps ==
                    (axes.size() == 3 && !keep_dims && !is_one_op ? 1 : 0));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a reduction computes the ops before and after it") {
  Fusion f;
  f.Feed("x", {2, 3}, {-1, 0, 1, 2, -3, 4});
  f.Feed("row", {3}, {1, 2, 3});
  f.Feed("column", {2, 1}, {5, 6});
  f.Add("product", "Mul", {"row", "x"});
  f.Reduce("mean", "Mean", "product", {-1}, true);
  f.Add("difference", "Sub", {"column", "mean"});
  f.Add("less", "Less", {"difference", "column"});
  f.Reduce("all", "All", "less", {0, -1});
  f.Add("not", "LogicalNot", {"all"}, DataType::kBool).RemoveAttr("T");
  f.Add("out", "Identity", {"difference"});
  f.Add("out2", "Identity", {"not"}, DataType::kBool);
  const std::string expected = f.Result("out"), is_not = f.Result("out2");
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity Identity ", kFusedReduceOp, " ",
                                kFusedReduceOp));
  num_maps = num_reductions = 0;
  CHECK(f.Result("out") == expected);
  CHECK(f.Result("out2") == is_not);
  CHECK(num_reductions == 2);
  CHECK(num_maps == 0);
}

TEST_CASE("a reduction between two others belongs to one of them") {
  Fusion f;
  f.Feed("x", {2, 3}, {-1, 0, 1, 2, -3, 4});
  f.Reduce("sum", "Sum", "x", {-1});
  f.Add("square", "Square", {"sum"});
  f.Reduce("total", "Sum", "square", {0});
  f.Add("root", "Sqrt", {"total"});
  f.Add("out", "Identity", {"root"});
  f.State("square", PartialShape(Shape({2})));
  const std::string expected = f.Result("out");
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity Sum ", kFusedReduceOp));
  CHECK(f.Result("out") == expected);
}

TEST_CASE("a reduction of nothing and the ops after it") {
  for (const int64_t rows : {0, 2}) {
    Fusion f;
    f.Feed("x", {rows, 0}, {});
    f.Reduce("max", "Max", "x", {-1});
    f.Add("tanh", "Tanh", {"max"});
    f.Add("out", "Identity", {"tanh"});
    const std::string expected = f.Result("out");
    f.Fuse();
    CHECK(f.Ops() == absl::StrCat("Identity ", kFusedReduceOp));
    CHECK(f.Result("out") == expected);
  }
}

TEST_CASE("a reduction with too many operands stays apart") {
  Fusion f;
  f.Feed("x", {2, 3}, {-1, 0, 1, 2, -3, 4});
  f.Reduce("sum", "Sum", "x", {-1});
  std::string last = "sum";
  const int num_ops = 14;
  for (int i = 0; i < num_ops; ++i) {
    const std::string y = absl::StrCat("y", i), sum = absl::StrCat("add", i);
    f.Feed(y, {2}, {1, float(i)});
    f.Add(sum, "AddV2", {last, y});
    last = sum;
  }
  f.Add("out", "Identity", {last});
  const std::string expected = f.Result("out");
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity Sum ", kFusedMapOp));
  CHECK(f.Result("out") == expected);
}

TEST_CASE("ops that a reduction does not compute") {
  Fusion f;
  f.Feed("x", {2, 2}, {1, 2, 3, 4});
  Node sum = f.Reduce("sum", "Sum", "x", {-1});
  f.Add("tanh", "Tanh", {"sum"});
  SUBCASE("with another user") { f.Add("out2", "Identity", {"sum"}); }
  SUBCASE("with a control user") { f.Add("after", "NoOp", {"^sum"}); }
  SUBCASE("that is preserved") { f.item.nodes_to_preserve = {"sum"}; }
  SUBCASE("with the label of a kernel") {
    sum.SetAttr("_kernel", std::string("mine"));
  }
  SUBCASE("on another device") { sum.SetDevice(kCpu); }
  SUBCASE("that is broadcast") {
    f.State("sum", Shape{1, 2});
    f.State("tanh", Shape{3, 2});
  }
  f.Add("out", "Identity", {"tanh"});
  f.Fuse();
  CHECK(!absl::StrContains(f.Ops(), "Tfplug"));
}

TEST_CASE("what a reduction does not compute") {
  Fusion f;
  f.Feed("x", {3}, {-1, 0, 1});
  f.Add("used", "Exp", {"x"});
  f.Reduce("sum1", "Sum", "used", {-1});
  f.Add("out1", "Identity", {"used"});
  f.Add("first", "Exp", {"x"});
  f.Reduce("sum2", "Sum", "first", {-1});
  f.Add("out2", "Identity", {"sum2", "^first"});
  f.Add("other", "Exp", {"x"}).SetDevice(kCpu);
  f.Reduce("sum3", "Sum", "other", {-1});
  f.Add("kept", "Exp", {"x"});
  f.Reduce("sum4", "Sum", "kept", {-1});
  f.Add("label", "Exp", {"x"});
  f.Reduce("sum5", "Sum", "label", {-1})
      .SetAttr("_kernel", std::string("mine"));
  f.Reduce("sum6", "Sum", "x", {-1});
  f.Add("unknown", "Exp", {"x"});
  f.Reduce("sum7", "Sum", "unknown", {0});
  f.item.nodes_to_preserve = {"sum4"};
  f.Fuse();
  CHECK(!absl::StrContains(f.Ops(), "Tfplug"));
}

TEST_CASE("a reduction keeps control edges and the shape") {
  Fusion f;
  f.Feed("x", {3}, {-1, 0, 1});
  f.Add("before", "NoOp", {});
  f.Add("first", "Exp", {"x", "^before"});
  f.Reduce("sum", "Sum", "first", {-1});
  REQUIRE(f["sum"].AddControl(f["before"]).ok());
  f.Add("after", "NoOp", {"^sum"});
  f.State("sum", PartialShape(Shape({})));
  f.Fuse();
  REQUIRE(f["sum/fused"]);
  CHECK(f.ShapeAfter("sum/fused") == "[]");
  const auto controls = [&](const char* name) {
    std::vector<std::string> names;
    for (const Node from : f[name].controls()) {
      names.emplace_back(from.name());
    }
    return absl::StrJoin(names, " ");
  };
  CHECK(controls("sum/fused") == "before");
  CHECK(controls("after") == "sum/fused");
}

TEST_CASE("a reduction and the ops after it keep control edges and the shape") {
  Fusion f;
  f.Feed("x", {3}, {-1, 0, 1});
  f.Add("before", "NoOp", {});
  f.Reduce("sum", "Sum", "x", {-1});
  REQUIRE(f["sum"].AddControl(f["before"]).ok());
  f.Add("early", "NoOp", {});
  f.Add("tanh", "Tanh", {"sum", "^early"});
  f.Add("after", "NoOp", {"^tanh"});
  f.Add("out", "Identity", {"tanh"});
  f.State("tanh", PartialShape(Shape({})));
  f.Fuse();
  const Node fused = f["tanh/fused/reduce"];
  REQUIRE(fused);
  CHECK(f.ShapeAfter("tanh/fused/reduce") == "[]");
  CHECK(fused.num_controls() == 2);
  CHECK(f["after"].control(0) == fused);
}

}  // namespace
}  // namespace tfplug::fuse_reductions_test
