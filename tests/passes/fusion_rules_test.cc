// SPDX-License-Identifier: Apache-2.0
#include <tfplug/passes/fusion_rules.h>

#include <string>
#include <vector>

#include "passes/passes_fixture.h"

namespace tfplug::fusion_rules_test {
namespace {

using Fixture = PassesFixture;

TEST_CASE_FIXTURE(Fixture, "MatMul + BiasAdd + LeakyRelu") {
  const Rules rules(FusionRules());
  Add(R"(product = MatMul(x, w) {transpose_b=true}
         bias = BiasAdd(product, b) {data_format="NHWC"})");
  Add("leaky = LeakyRelu(bias) {alpha=0.75}");
  CHECK(Run(rules) == "1");
  CHECK(Compare(R"(
      leaky = _FusedMatMul(x, w, b) {
          fused_ops=["BiasAdd", "LeakyRelu"], leakyrelu_alpha=0.75,
          transpose_b=true, num_args=1})") == "");
}
TEST_CASE_FIXTURE(Fixture,
                  "only activations that the kernels implement are fused") {
  const Rules rules(FusionRules({"Relu"}));
  Add(R"(product = MatMul(x, w)
         bias = BiasAdd(product, b) {data_format="NHWC"})");
  Add("elu = Elu(bias)");
  CHECK(Run(rules) == "1");
  CHECK(Compare(R"(bias = _FusedMatMul(x, w, b)
                   elu = Elu(bias))") == "");
}
TEST_CASE_FIXTURE(Fixture, "a type without a kernel is not fused") {
  const Rules rules(FusionRules());
  Add(R"(product = MatMul(x, w) {T=double}
         bias = BiasAdd(product, b) {data_format="NHWC"})");
  CHECK(Run(rules) == "0");
}

TEST_CASE_FIXTURE(Fixture, "an addend is a bias if its shape is known to fit") {
  const Rules rules(FusionRules());
  Add("product = MatMul(x, w)");
  SUBCASE("a vector as the first addend") {
    Add("sum = AddV2(b, product)");
    State("product", {-1, 5});
    State("b", {5});
  }
  SUBCASE("a vector that is reshaped to a row") {
    Add(R"(row = Reshape(b, v)
           sum = AddV2(product, row))");
    State("product", {-1, 5});
    State("b", {5});
    State("row", {1, 5});
  }
  CHECK(Run(rules) == "1");
  CHECK(Compare(R"(
      sum = _FusedMatMul(x, w, b) {fused_ops=["BiasAdd"]}
      ...)") == "");
}
TEST_CASE_FIXTURE(Fixture, "a constant row is a bias") {
  const Rules rules(FusionRules());
  Add(R"(product = MatMul(x, w)
         row: float[1,2] = [1, 2]
         sum = AddV2(product, row))");
  State("product", {-1, 2});
  CHECK(Run(rules) == "1");
  CHECK(Compare(R"(sum/Const: float[2] = [1, 2]
                   sum = _FusedMatMul(x, w, sum/Const))") == "");
}
TEST_CASE_FIXTURE(Fixture, "other addends are not a bias") {
  const Rules rules(FusionRules());
  Add(R"(product = MatMul(x, w)
         sum = AddV2(product, b))");
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
  Add(R"(product = MatMul(x, w)
         rows: float[1,1,2] = [1, 2]
         sum = AddV2(product, rows))");
  State("product", {-1, 2});
  CHECK(Run(rules) == "0");
}

TEST_CASE_FIXTURE(Fixture, "a convolution with a bias is fused") {
  const Rules rules(FusionRules());
  std::string fused;
  SUBCASE("Conv2D") {
    AddConv("Conv2D", "x, w");
    fused = "_FusedConv2D";
  }
  SUBCASE("DepthwiseConv2dNative") {
    AddConv("DepthwiseConv2dNative", "x, w");
    fused = "_FusedDepthwiseConv2dNative";
  }
  AddBias("bias", "conv");
  Add("relu = Relu6(bias)");
  CHECK(Run(rules) == "1");
  CHECK(Compare("relu = " + fused + R"((x, w, b) {
      fused_ops=["BiasAdd", "Relu6"], strides=[1, 2, 2, 1], padding="VALID"})") ==
        "");
  CHECK((*this)["relu"].HasAttr("TArgs") == (fused == "_FusedConv2D"));
}
TEST_CASE_FIXTURE(Fixture, "some convolutions are not fused") {
  const Rules rules(FusionRules());
  SUBCASE("a convolution in NCHW") {
    AddConv("Conv2D", "x, w").SetAttr("data_format", "NCHW");
    AddBias("bias", "conv");
  }
  SUBCASE("a BiasAdd in NCHW") {
    AddConv("Conv2D", "x, w");
    AddBias("bias", "conv").SetAttr("data_format", "NCHW");
  }
  SUBCASE("a depthwise convolution with explicit paddings") {
    AddConv("DepthwiseConv2dNative", "x, w").SetAttr("padding", "EXPLICIT");
    AddBias("bias", "conv");
  }
  CHECK(Run(rules) == "0");
}
TEST_CASE_FIXTURE(Fixture, "a batch normalization is fused for inference") {
  const Rules rules(FusionRules());
  Add("scale, offset, mean, variance = Placeholder()");
  AddConv("Conv2D", "x, w");
  const Node norm = AddNorm("conv");
  Add("relu = Relu(norm)");
  SUBCASE("inference") {
    CHECK(Run(rules) == "1");
    CHECK(Compare(R"(
        relu = _FusedConv2D(x, w, scale, offset, mean, variance) {
            fused_ops=["FusedBatchNorm", "Relu"], epsilon=0.25, num_args=4,
            TArgs=[float, float, float, float]})") == "");
  }
  SUBCASE("training") {
    norm.SetAttr("is_training", true);
    CHECK(Run(rules) == "0");
  }
  SUBCASE("a normalization whose statistics are used") {
    Add("mean2 = Neg(norm:1)");
    CHECK(Run(rules) == "0");
  }
}

}  // namespace
}  // namespace tfplug::fusion_rules_test
