// SPDX-License-Identifier: Apache-2.0
// What FuseElementwise does with shapes that are unknown, or may differ.

#include <doctest/doctest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "fusion_graph.h"
#include "tfplug/passes/fuse_elementwise.h"

namespace tfplug::fuse_elementwise_test {
namespace {

TEST_CASE("outputs may turn out to have different shapes") {
  Fusion f;
  f.Feed("x", {3}, {-1, 0, 1});
  f.Feed("y", {2, 3}, {1, 2, 3, 4, 5, 6});
  f.Add("tanh", "Tanh", {"x"});
  f.Add("sum", "AddV2", {"tanh", "y"});
  f.Add("out1", "Identity", {"tanh"});
  f.Add("out2", "Identity", {"sum"});
  const std::string tanh = f.Result("out1"), sum = f.Result("out2");
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity Identity ", kFusedMapOp));
  num_maps = 0;
  CHECK(f.Result("out1") == tanh);
  CHECK(f.Result("out2") == sum);
  CHECK(num_maps == 2);
}

TEST_CASE("what is known to be broadcast stays apart") {
  Fusion f;
  f.Feed("x", {3}, {-1, 0, 1});
  f.Feed("y", {2, 3}, {1, 2, 3, 4, 5, 6});
  f.Add("tanh", "Tanh", {"x"});
  f.Add("sum", "AddV2", {"tanh", "y"});
  f.State("tanh", Shape{3});
  f.State("sum", Shape{-2, 3});
  f.Fuse();
  CHECK(f.Ops() == "AddV2 Tanh");
}

TEST_CASE("equal unknown dimensions are fused") {
  Fusion f;
  f.Feed<bool>("p", {3}, {true, false, true});
  f.Feed("x", {3}, {-1, 0, 1});
  f.Add("tanh", "Tanh", {"x"});
  // The condition of Select may be a vector that chooses rows.
  f.Add("select", "Select", {"p", "tanh", "x"});
  f.Add("out", "Identity", {"select"});
  f.Fuse();
  CHECK(f.Ops() == "Identity Select Tanh");
  const PartialShape shape(Shape{-5, 3}), other(Shape{-6, 3});
  f.item.inputs["select"] = {{capi::TF_BOOL, other, ""},
                             {capi::TF_FLOAT, shape, ""},
                             {capi::TF_FLOAT, shape, ""}};
  f.Fuse();
  CHECK(f.Ops() == "Identity Select Tanh");
  f.item.inputs["select"][0].shape = shape;
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity ", kFusedMapOp));
}

TEST_CASE("a condition that may choose rows keeps Select apart") {
  Fusion f;
  f.Feed<bool>("p", {2}, {true, false});
  f.Feed("x", {2, 2}, {-1, 0, 1, 2});
  f.Feed("y", {2, 2}, {3, 4, 5, 6});
  f.MatMul("product", {"x", "y"});
  f.Add("select", "Select", {"p", "product", "y"});
  f.Add("neg", "Neg", {"select"});
  f.Add("out", "Identity", {"neg"});
  f.Add("rows", "Select", {"p", "x", "y"});
  f.Reduce("sum", "Sum", "rows", {-1});
  f.Add("out2", "Identity", {"sum"});
  const std::string ops = f.Ops();
  const std::string out = f.Result("out"), out2 = f.Result("out2");
  f.Fuse();
  CHECK(f.Ops() == ops);
  CHECK(f.Result("out") == out);
  CHECK(f.Result("out2") == out2);
}

TEST_CASE("gradients check at run time that shapes are equal") {
  Fusion f;
  f.Feed("x", {3}, {-1, 0, 1});
  f.Feed("dy", {3}, {1, 1, 1});
  f.Feed("wrong", {1, 3}, {1, 1, 1});
  f.Add("tanh", "Tanh", {"x"});
  f.Add("relu", "ReluGrad", {"dy", "tanh"});
  f.Add("out", "Identity", {"relu"});
  const std::string expected = f.Result("out");
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity ", kFusedMapOp));
  CHECK(f.Result("out") == expected);
  f.values.clear();
  f.feeds.at("dy") = f.feeds.at("wrong");
  CHECK(absl::StrContains(f.Result("out"),
                          "all inputs must have the same shape"));
}

}  // namespace
}  // namespace tfplug::fuse_elementwise_test
