// SPDX-License-Identifier: Apache-2.0
// Products, and the element-wise ops after them.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "fusion_graph.h"

namespace tfplug::fuse_products_test {
namespace {

TEST_CASE("a product and the ops after it become one op") {
  for (const DataType type : {DataType::kFloat, DataType::kHalf,
                              DataType::kBfloat16, DataType::kDouble}) {
    for (const bool is_batch : {false, true}) {
      for (const bool is_one_op : {false, true}) {
        CAPTURE(static_cast<int>(type));
        CAPTURE(is_batch);
        CAPTURE(is_one_op);
        Fusion f;
        const int64_t batch = is_batch ? 2 : 1;
        f.Feed("x", {batch, 3, 2}, std::vector<float>(size_t(batch) * 6, 1.3f));
        f.Feed("w", {1, 4, 3}, {-1, 0, 1, .3f, 2, 3, -2, 1, 1, 4, .7f, 2});
        f.Feed("matrix", {3, 2}, {-1, 0.1f, 1, 2, -3, 4});
        f.Feed("weights", {4, 3}, {-1, 0, 1, .3f, 2, 3, -2, 1, 1, 4, .7f, 2});
        f.Feed("row", {4}, {1.1f, -7, 2, 1});
        for (const char* name : {"x", "w", "matrix", "weights", "row"}) {
          f.Add(absl::StrCat(name, "/cast"), "Cast", {name}, type)
              .SetAttr("SrcT", DataType::kFloat);
        }
        const char* const attrs[] = {is_batch ? "adj_x" : "transpose_a",
                                     is_batch ? "adj_y" : "transpose_b"};
        const Node product =
            f.Add("product", is_batch ? "BatchMatMulV2" : "MatMul",
                  {is_batch ? "x/cast" : "matrix/cast",
                   is_batch ? "w/cast" : "weights/cast"},
                  type);
        product.SetAttr(attrs[0], true);
        product.SetAttr(attrs[1], true);
        f.Add("end", "BiasAdd", {"product", "row/cast"}, type);
        if (!is_one_op) {
          f.Add("tanh", "Tanh", {"end"}, type);
          f.Add("last", "Mul", {"row/cast", "tanh"}, type);
          f.Add("out2", "Identity", {"end"}, type);
        }
        f.Add("out", "Identity", {is_one_op ? "end" : "last"}, type);
        const std::string expected = f.Result("out");
        const std::string biased = is_one_op ? "" : f.Result("out2");
        f.Fuse();
        CHECK(absl::StrContains(f.Ops(), kFusedMatMulOp));
        CHECK(!absl::StrContains(f.Ops(), "BiasAdd"));
        CHECK(!f["product"]);
        num_products = 0;
        CHECK(f.Result("out") == expected);
        if (!is_one_op) CHECK(f.Result("out2") == biased);
        CHECK(num_products == 1);
      }
    }
  }
}

TEST_CASE("a product is the second input of the op after it") {
  Fusion f;
  f.Feed("x", {2, 2}, {1, 2, 3, 4});
  f.Feed("y", {2, 2}, {5, 6, 7, 9});
  f.MatMul("product", {"x", "y"});
  f.Add("difference", "Sub", {"y", "product"});
  f.Add("last", "Mul", {"difference", "product"});
  f.Add("out", "Identity", {"last"});
  const std::string expected = f.Result("out");
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity ", kFusedMatMulOp));
  CHECK(f.ExpressionOf("last/fused/matmul") ==
        "float float;input:float 1;input:float 0;sub:float 0 1;mul:float 2 1;"
        "3:float");
  CHECK(f.Result("out") == expected);
}

TEST_CASE("an op may have another shape than the product") {
  Fusion f;
  std::vector<float> y = {5, 6, 7, 9};
  SUBCASE("the product is broadcast") {
    f.Feed("x", {1, 2}, {1, 2});
    f.Feed("z", {3, 2}, {1, 2, 3, 4, 5, 6});
  }
  SUBCASE("the product is empty") {
    f.Feed("x", {0, 2}, {});
    f.Feed("z", {1, 2}, {1, 2});
  }
  SUBCASE("the sum of no products") {
    f.Feed("x", {3, 0}, {});
    f.Feed("z", {3, 2}, {1, 2, 3, 4, 5, 6});
    y.clear();
  }
  f.Feed("y", {static_cast<int64_t>(y.size()) / 2, 2}, y);
  f.MatMul("product", {"x", "y"});
  f.Add("tanh", "Tanh", {"product"});
  f.Add("sum", "AddV2", {"tanh", "z"});
  f.Add("out1", "Identity", {"tanh"});
  f.Add("out2", "Identity", {"sum"});
  const std::string tanh = f.Result("out1"), sum = f.Result("out2");
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity Identity ", kFusedMatMulOp));
  CHECK(f.Result("out1") == tanh);
  CHECK(f.Result("out2") == sum);
}

TEST_CASE("an input is transposed only if the product says so") {
  for (const char* op : {"MatMul", "BatchMatMulV2"}) {
    Fusion f;
    f.Feed("x", {2, 2}, {1, 2, 3, 4});
    f.Add("product", op, {"x", "x"});
    f.Add("tanh", "Tanh", {"product"});
    f.Add("out", "Identity", {"tanh"});
    f.Fuse();
    const Node fused = f["tanh/fused/matmul"];
    REQUIRE(fused);
    CHECK_FALSE(fused.GetAttr<bool>("transpose_a").value());
    CHECK_FALSE(fused.GetAttr<bool>("transpose_b").value());
  }
}

TEST_CASE("one of two products is fused") {
  Fusion f;
  f.Feed("x", {2, 2}, {1, 2, 3, 4});
  f.Feed("h", {2, 2}, {5, 6, 7, 9});
  f.MatMul("first", {"x", "x"});
  f.MatMul("second", {"h", "x"});
  f.Add("sum", "AddV2", {"first", "second"});
  f.Add("tanh", "Tanh", {"sum"});
  f.Add("out", "Identity", {"tanh"});
  const std::string expected = f.Result("out");
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity MatMul ", kFusedMatMulOp));
  CHECK(f.Result("out") == expected);
}

TEST_CASE("products that stay apart") {
  Fusion f;
  f.Feed("x", {2, 2}, {1, 2, 3, 4});
  DataType type = DataType::kFloat;
  std::string device = kDevice;
  SUBCASE("with another user") {
    f.MatMul("product", {"x", "x"});
    f.Add("out2", "Identity", {"product"});
  }
  SUBCASE("with a control user") {
    f.MatMul("product", {"x", "x"});
    f.Add("after", "NoOp", {"^product"});
  }
  SUBCASE("that are preserved") {
    f.MatMul("product", {"x", "x"});
    f.item.nodes_to_preserve = {"product"};
  }
  SUBCASE("with the label of a kernel") {
    f.MatMul("product", {"x", "x"}).SetAttr("_kernel", "label");
  }
  SUBCASE("on another device") {
    f.MatMul("product", {"x", "x"}).SetDevice(kCpu);
  }
  SUBCASE("of integers") {
    type = DataType::kInt64;
    f.MatMul("product", {"x", "x"}, type);
  }
  SUBCASE("that are known to be broadcast") {
    f.MatMul("product", {"x", "x"});
    f.State("product", Shape{1, 2});
    f.State("tanh", Shape{3, 2});
  }
  SUBCASE("in a branch") {
    f.MatMul("whole", {"x", "x"});
    f.Feed<bool>("p", {}, {true});
    f.Add("product", "Switch", {"whole", "p"});
  }
  f.Add("tanh", "Neg", {"product"}, type);
  f.Add("out", "Identity", {"tanh"}, type);
  f.Fuse();
  CHECK(!absl::StrContains(f.Ops(), "Tfplug"));
}

TEST_CASE("a product keeps control edges and the shape") {
  Fusion f;
  f.Feed("x", {2, 2}, {1, 2, 3, 4});
  f.Add("before", "NoOp", {});
  f.MatMul("product", {"x", "x", "^before"});
  f.Add("early", "NoOp", {});
  f.Add("tanh", "Tanh", {"product", "^early"});
  f.Add("after", "NoOp", {"^tanh"});
  f.Add("out", "Identity", {"tanh"});
  f.State("tanh", PartialShape(Shape({2, 2})));
  f.Fuse();
  const Node fused = f["tanh/fused/matmul"];
  REQUIRE(fused);
  CHECK(f.ShapeAfter("tanh/fused/matmul") == "[2,2]");
  CHECK(fused.num_controls() == 2);
  CHECK(f["after"].control(0) == fused);
}

TEST_CASE("a reduction wins over a product") {
  Fusion f;
  f.Feed("x", {2, 2}, {1, 2, 3, 4});
  f.MatMul("product", {"x", "x"});
  f.Add("square", "Square", {"product"});
  f.Reduce("sum", "Sum", "square", {-1});
  f.Add("out", "Identity", {"sum"});
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity MatMul ", kFusedReduceOp));
}

}  // namespace
}  // namespace tfplug::fuse_products_test
