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
  for (const std::string type : {"float", "half", "bfloat16", "double"}) {
    for (const bool is_batch : {false, true}) {
      for (const bool is_one_op : {false, true}) {
        CAPTURE(type);
        CAPTURE(is_batch);
        CAPTURE(is_one_op);
        Fusion f;
        f.Feed(absl::StrCat(
            "x: ", type,
            is_batch ? "[2,3,2] = 1.3" : "[3,2] = [-1, .1, 1, 2, -3, 4]"));
        f.Feed(absl::StrCat("w: ", type, is_batch ? "[1,4,3]" : "[4,3]",
                            " = [-1, 0, 1, .3, 2, 3, -2, 1, 1, 4, .7, 2]"));
        f.Feed(absl::StrCat("row: ", type, "[4] = [1.1, -7, 2, 1]"));
        f.Add(is_batch
                  ? "product = BatchMatMulV2(x, w) {adj_x=true, adj_y=true}"
                  : "product = MatMul(x, w) {transpose_a=true, "
                    "transpose_b=true}",
              type);
        f.Add("end = BiasAdd(product, row)\nout = Identity(end)", type);
        if (!is_one_op) {
          f.Add(R"(
              tanh = Tanh(end)
              last = Mul(row, tanh)
              out2 = Identity(last))",
                type);
        }
        CHECK(f.FuseAndCompare() == kFusedMatMulOp);
        CHECK(num_products == 1);
      }
    }
  }
}

TEST_CASE("a product is the second input of the op after it") {
  Fusion f;
  f.Feed(R"(x: float[2,2] = [1, 2, 3, 4]
            y: float[2,2] = [5, 6, 7, 9])");
  f.Add(R"(
      product = MatMul(x, y)
      difference = Sub(y, product)
      last = Mul(difference, product)
      out = Identity(last))");
  CHECK(f.FuseAndCompare() == kFusedMatMulOp);
  CHECK(f.ExpressionOf("last/fused/matmul") ==
        "float float;input:float 1;input:float 0;sub:float 0 1;mul:float 2 1;"
        "3:float");
}

TEST_CASE("an op may have another shape than the product") {
  Fusion f;
  SUBCASE("the product is broadcast") {
    f.Feed(R"(x: float[1,2] = [1, 2]
              y: float[2,2] = [5, 6, 7, 9]
              z: float[3,2] = [1, 2, 3, 4, 5, 6])");
  }
  SUBCASE("the product is empty") {
    f.Feed(R"(x: float[0,2] = []
              y: float[2,2] = [5, 6, 7, 9]
              z: float[1,2] = [1, 2])");
  }
  SUBCASE("the sum of no products") {
    f.Feed(R"(x: float[3,0] = []
              y: float[0,2] = []
              z: float[3,2] = [1, 2, 3, 4, 5, 6])");
  }
  f.Add(R"(
      product = MatMul(x, y)
      tanh = Tanh(product)
      sum = AddV2(tanh, z)
      out1 = Identity(tanh)
      out2 = Identity(sum))");
  CHECK(f.FuseAndCompare() == kFusedMatMulOp);
}

TEST_CASE("an input is transposed only if the product says so") {
  for (const std::string op : {"MatMul", "BatchMatMulV2"}) {
    Fusion f;
    f.Add(absl::StrCat("x = Placeholder()\nproduct = ", op,
                       R"((x, x) {!transpose_a, !transpose_b}
             tanh = Tanh(product)
             out = Identity(tanh))"));
    f.Fuse();
    CHECK(f.Compare(R"(
        tanh/fused/matmul = TfplugFusedMatMulV2(x, x) {transpose_a=false,
                                                       transpose_b=false}
        out = Identity(tanh/fused/matmul))") == "");
  }
}

TEST_CASE("one of two products is fused") {
  Fusion f;
  f.Feed(R"(x: float[2,2] = [1, 2, 3, 4]
            h: float[2,2] = [5, 6, 7, 9])");
  f.Add(R"(
      first = MatMul(x, x)
      second = MatMul(h, x)
      sum = AddV2(first, second)
      tanh = Tanh(sum)
      out = Identity(tanh))");
  CHECK(f.FuseAndCompare() == absl::StrCat("MatMul ", kFusedMatMulOp));
}

TEST_CASE("products that stay apart") {
  Fusion f;
  std::string product = "product = MatMul(x, x)", last = "last = Neg(product)",
              type = "float";
  SUBCASE("with another user") { last += "\nout2 = Identity(product)"; }
  SUBCASE("with a control user") { last += "\nafter = NoOp(^product)"; }
  SUBCASE("that are preserved") { f.item.nodes_to_preserve = {"product"}; }
  SUBCASE("with the label of a kernel") { product += R"( {_kernel="label"})"; }
  SUBCASE("on another device") { product += " @CPU"; }
  SUBCASE("of integers") { type = "int64"; }
  SUBCASE("that are known to be broadcast") {
    product = "product: float[1,2] = MatMul(x, x)";
    last = "last: float[3,2] = Neg(product)";
  }
  SUBCASE("in a branch") {
    product = "whole = MatMul(x, x)\nproduct = Switch(whole, p)";
  }
  f.Add("x, p = Placeholder()\nout = Identity(last)\n" + product + "\n" + last,
        type);
  CHECK(!absl::StrContains(f.Fuse(), "Tfplug"));
}

TEST_CASE("a product keeps control edges and the shape") {
  Fusion f;
  f.Add(R"(
      x = Placeholder()
      before, early = NoOp()
      product = MatMul(x, x, ^before)
      tanh: float[2,2] = Tanh(product, ^early)
      after = NoOp(^tanh)
      out = Identity(tanh))");
  f.Fuse();
  CHECK(f.Compare(R"(
      tanh/fused/matmul = TfplugFusedMatMulV2(x, x, ^before, ^early)
      after = NoOp(^tanh/fused/matmul)
      out = Identity(tanh/fused/matmul))") == "");
  CHECK(f.ShapeAfter("tanh/fused/matmul") == "[2,2]");
}

TEST_CASE("a reduction wins over a product") {
  Fusion f;
  f.Add(R"(
      x = Placeholder()
      product = MatMul(x, x)
      square = Square(product)
      last: int32[1] = [-1]
      sum = Sum(square, last)
      out = Identity(sum))");
  CHECK(f.Fuse() == absl::StrCat("MatMul ", kFusedReduceOp));
}

}  // namespace
}  // namespace tfplug::fuse_products_test
