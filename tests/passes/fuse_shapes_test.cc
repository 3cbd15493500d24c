// SPDX-License-Identifier: Apache-2.0
// What FuseElementwise does with shapes that are unknown, or may differ.

#include <doctest/doctest.h>

#include <string>

#include "absl/strings/match.h"
#include "fusion_graph.h"
#include "tfplug/passes/fuse_elementwise.h"

namespace tfplug::fuse_elementwise_test {
namespace {

TEST_CASE("outputs may turn out to have different shapes") {
  Fusion f;
  f.Feed(R"(x: float[3] = [-1, 0, 1]
            y: float[2,3] = [1, 2, 3, 4, 5, 6])");
  f.Add(R"(
      tanh = Tanh(x)
      sum = AddV2(tanh, y)
      out1 = Identity(tanh)
      out2 = Identity(sum))");
  CHECK(f.FuseAndCompare() == kFusedMapOp);
  CHECK(num_maps == 2);
}

TEST_CASE("what is known to be broadcast stays apart") {
  Fusion f;
  f.Add(R"(
      x, y = Placeholder()
      tanh: float[3] = Tanh(x)
      sum: float[?,3] = AddV2(tanh, y)
      out = Identity(sum))");
  CHECK(f.Fuse() == "AddV2 Tanh");
}

TEST_CASE("equal unknown dimensions are fused") {
  Fusion f;
  // The condition of Select may be a vector that chooses rows.
  f.Add(R"(
      p, x = Placeholder()
      tanh = Tanh(x)
      select = Select(p, tanh, x)
      out = Identity(select))");
  CHECK(f.Fuse() == "Select Tanh");
  const PartialShape shape(Shape{-5, 3}), other(Shape{-6, 3});
  f.item.inputs["select"] = {{capi::TF_BOOL, other, ""},
                             {capi::TF_FLOAT, shape, ""},
                             {capi::TF_FLOAT, shape, ""}};
  CHECK(f.Fuse() == "Select Tanh");
  f.item.inputs["select"][0].shape = shape;
  CHECK(f.Fuse() == kFusedMapOp);
}

TEST_CASE("a condition that may choose rows keeps Select apart") {
  Fusion f;
  f.Feed(R"(p: bool[2] = [1, 0]
            x: float[2,2] = [-1, 0, 1, 2]
            y: float[2,2] = [3, 4, 5, 6])");
  f.Add(R"(
      product = MatMul(x, y)
      select = Select(p, product, y)
      neg = Neg(select)
      out = Identity(neg)
      rows = Select(p, x, y)
      last: int32[1] = [-1]
      sum = Sum(rows, last)
      out2 = Identity(sum))");
  const std::string ops = f.Ops();
  CHECK(f.FuseAndCompare() == ops);
}

TEST_CASE("gradients check at run time that shapes are equal") {
  Fusion f;
  f.Feed(R"(x: float[3] = [-1, 0, 1]
            dy: float[3] = [1, 1, 1])");
  f.Add(R"(
      tanh = Tanh(x)
      relu = ReluGrad(dy, tanh)
      out = Identity(relu))");
  CHECK(f.FuseAndCompare() == kFusedMapOp);
  f.Feed("dy: float[1,3] = [1, 1, 1]");
  CHECK(absl::StrContains(f.Result("out"),
                          "all inputs must have the same shape"));
}

}  // namespace
}  // namespace tfplug::fuse_elementwise_test
