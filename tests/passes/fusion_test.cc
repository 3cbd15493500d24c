// SPDX-License-Identifier: Apache-2.0
#include <tfplug/passes/fusion.h>

#include <string>
#include <vector>

#include "passes/passes_fixture.h"

namespace tfplug::fusion_test {
namespace {

using Fixture = PassesFixture;

TEST_CASE_FIXTURE(Fixture, "MatMul + BiasAdd + LeakyRelu") {
  const Rules rules(FusionRules());
  Add("product", "MatMul", {"x", "w"}).SetAttr("transpose_b", true);
  AddBias("bias", "product");
  Add("leaky", "LeakyRelu", {"bias"}).SetAttr("alpha", 0.75f);
  CHECK(Run(rules) == "1");
  CHECK(Text() == "leaky = _FusedMatMul(x, w, b)");
  CHECK(FusedOps("leaky") == "BiasAdd+LeakyRelu");
  const Node fused = graph.FindNode("leaky");
  CHECK(fused.GetAttr<float>("leakyrelu_alpha").value() == 0.75f);
  CHECK(fused.GetAttr<bool>("transpose_b").value());
  CHECK(fused.GetAttr<int64_t>("num_args").value() == 1);
}
TEST_CASE_FIXTURE(Fixture,
                  "only activations that the kernels implement are fused") {
  const Rules rules(FusionRules({"Relu"}));
  Add("product", "MatMul", {"x", "w"});
  AddBias("bias", "product");
  Add("elu", "Elu", {"bias"});
  CHECK(Run(rules) == "1");
  CHECK(Text() == "bias = _FusedMatMul(x, w, b)\nelu = Elu(bias)");
}
TEST_CASE_FIXTURE(Fixture, "a type without a kernel is not fused") {
  const Rules rules(FusionRules());
  Add("product", "MatMul", {"x", "w"}).SetAttr("T", DataType::kDouble);
  AddBias("bias", "product");
  CHECK(Run(rules) == "0");
}

TEST_CASE_FIXTURE(Fixture, "an addend is a bias if its shape is known to fit") {
  const Rules rules(FusionRules());
  Add("product", "MatMul", {"x", "w"});
  SUBCASE("a vector as the first addend") {
    Add("sum", "AddV2", {"b", "product"});
    State("product", {-1, 5});
    State("b", {5});
  }
  SUBCASE("a vector that is reshaped to a row") {
    Add("row", "Reshape", {"b", "v"});
    Add("sum", "AddV2", {"product", "row"});
    State("product", {-1, 5});
    State("b", {5});
    State("row", {1, 5});
  }
  CHECK(Run(rules) == "1");
  CHECK(Text() == "sum = _FusedMatMul(x, w, b)");
  CHECK(FusedOps("sum") == "BiasAdd");
}
TEST_CASE_FIXTURE(Fixture, "a constant row is a bias") {
  const Rules rules(FusionRules());
  Add("product", "MatMul", {"x", "w"});
  AddConst("row", Constant::Of(Shape{1, 2}, Floats{1, 2}));
  Add("sum", "AddV2", {"product", "row"});
  State("product", {-1, 2});
  CHECK(Run(rules) == "1");
  CHECK(Text() == "sum = _FusedMatMul(x, w, sum/Const)");
  CHECK(Constant::Read(graph.FindNode("sum/Const"))->shape() == Shape{2});
}
TEST_CASE_FIXTURE(Fixture, "other addends are not a bias") {
  const Rules rules(FusionRules());
  Add("product", "MatMul", {"x", "w"});
  Add("sum", "AddV2", {"product", "b"});
  SUBCASE("a value of unknown shape") {}
  SUBCASE("a scalar") {
    State("product", {-1, 5});
    State("b", Shape{});
  }
  SUBCASE("one element that is broadcast") {
    State("product", {-1, 5});
    State("b", {1});
  }
  SUBCASE("a matrix of one row") {
    State("product", {-1, 5});
    State("b", {1, 5});
  }
  SUBCASE("a column") {
    State("product", {5, 5});
    State("b", {5, 1});
  }
  SUBCASE("a vector of unknown size") {
    State("product", {-1, -1});
    State("b", {-1});
  }
  CHECK(Run(rules) == "0");
}
TEST_CASE_FIXTURE(Fixture,
                  "an addend of higher rank than the product is not a bias") {
  const Rules rules(FusionRules());
  Add("product", "MatMul", {"x", "w"});
  AddConst("rows", Constant::Of(Shape{1, 1, 2}, Floats{1, 2}));
  Add("sum", "AddV2", {"product", "rows"});
  State("product", {-1, 2});
  CHECK(Run(rules) == "0");
}

TEST_CASE_FIXTURE(Fixture, "a convolution with a bias is fused") {
  const Rules rules(FusionRules());
  std::string fused;
  SUBCASE("Conv2D") {
    AddConv("Conv2D", {"x", "w"});
    fused = "_FusedConv2D";
  }
  SUBCASE("DepthwiseConv2dNative") {
    AddConv("DepthwiseConv2dNative", {"x", "w"});
    fused = "_FusedDepthwiseConv2dNative";
  }
  AddBias("bias", "conv");
  Add("relu", "Relu6", {"bias"});
  CHECK(Run(rules) == "1");
  CHECK(Text() == "relu = " + fused + "(x, w, b)");
  CHECK(FusedOps("relu") == "BiasAdd+Relu6");
  const Node node = graph.FindNode("relu");
  CHECK(node.GetAttr<Ints>("strides").value() == Ints{1, 2, 2, 1});
  CHECK(node.GetAttr<std::string>("padding").value() == "VALID");
  CHECK(node.HasAttr("TArgs") == (fused == "_FusedConv2D"));
}
TEST_CASE_FIXTURE(Fixture, "some convolutions are not fused") {
  const Rules rules(FusionRules());
  SUBCASE("a convolution in NCHW") {
    AddConv("Conv2D", {"x", "w"}).SetAttr("data_format", "NCHW");
    AddBias("bias", "conv");
  }
  SUBCASE("a BiasAdd in NCHW") {
    AddConv("Conv2D", {"x", "w"});
    AddBias("bias", "conv").SetAttr("data_format", "NCHW");
  }
  SUBCASE("a depthwise convolution with explicit paddings") {
    AddConv("DepthwiseConv2dNative", {"x", "w"}).SetAttr("padding", "EXPLICIT");
    AddBias("bias", "conv");
  }
  CHECK(Run(rules) == "0");
}
TEST_CASE_FIXTURE(Fixture, "a batch normalization is fused for inference") {
  const Rules rules(FusionRules());
  for (const char* name : {"scale", "offset", "mean", "variance"}) {
    Add(name, "Placeholder");
  }
  AddConv("Conv2D", {"x", "w"});
  const Node norm = AddNorm("conv");
  Add("relu", "Relu", {"norm"});
  SUBCASE("inference") {
    CHECK(Run(rules) == "1");
    CHECK(Text() == "relu = _FusedConv2D(x, w, scale, offset, mean, variance)");
    CHECK(FusedOps("relu") == "FusedBatchNorm+Relu");
    const Node fused = graph.FindNode("relu");
    CHECK(fused.GetAttr<float>("epsilon").value() == 0.25f);
    CHECK(fused.GetAttr<int64_t>("num_args").value() == 4);
    CHECK(fused.GetAttr<std::vector<DataType>>("TArgs")->size() == 4);
  }
  SUBCASE("training") {
    norm.SetAttr("is_training", true);
    CHECK(Run(rules) == "0");
  }
  SUBCASE("a normalization whose statistics are used") {
    Add("mean2", "Neg", {"norm:1"});
    CHECK(Run(rules) == "0");
  }
}

}  // namespace
}  // namespace tfplug::fusion_test
