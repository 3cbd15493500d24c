// SPDX-License-Identifier: Apache-2.0
#include <tfplug/passes/cancel_transposes.h>
#include <tfplug/passes/clean_casts.h>
#include <tfplug/passes/fold_batch_norm.h>
#include <tfplug/passes/fold_pads.h>

#include <string>
#include <vector>

#include "passes/passes_fixture.h"

namespace tfplug::passes_test {
namespace {

using Fixture = PassesFixture;

// ---- FoldBatchNorm ----
struct NormFixture : Fixture {
  NormFixture() {
    AddConst("scale", Constant::Of(Shape{2}, Floats{2, 3}));
    AddConst("offset", Constant::Of(Shape{2}, Floats{10, 20}));
    AddConst("mean", Constant::Of(Shape{2}, Floats{1, -1}));
    AddConst("variance", Constant::Of(Shape{2}, Floats{3.75f, 8.75f}));
  }
  Floats Elements(const std::string& name) {
    return Constant::Read(graph.FindNode(name))->GetElements<float>().value();
  }
  const Rules rules = Rules(FoldBatchNormRules());
};

TEST_CASE_FIXTURE(NormFixture, "a normalization is folded into the filter") {
  std::string op;
  Shape shape;
  SUBCASE("Conv2D, by output channel") {
    op = "Conv2D";
    shape = {2, 1, 1, 2};
  }
  SUBCASE("DepthwiseConv2dNative, by input channel and multiplier") {
    op = "DepthwiseConv2dNative";
    shape = {2, 1, 2, 1};
  }
  AddConst("filter", Constant::Of(shape, Floats{1, 2, 3, 4}));
  AddConv(op, {"x", "filter"});
  AddNorm("conv");
  // 1 / sqrt(variance + epsilon) is 1/2 and 1/3: the factors are 1 and 1.
  graph.FindNode("scale").SetRawAttr("value", [] {
    std::string value;
    internal::AppendField(value, 8,
                          Constant::Of(Shape{2}, Floats{4, 9}).Serialize());
    return value;
  }());
  CHECK(Run(rules) == "1");
  CHECK(Text() == "norm = BiasAdd(norm/" + op + ", norm/Const_1)\n" + "norm/" +
                      op + " = " + op + "(x, norm/Const)");
  CHECK(Elements("norm/Const") == Floats{2, 6, 6, 12});
  CHECK(Elements("norm/Const_1") == Floats{8, 23});
  CHECK(graph.FindNode("norm/" + op).GetAttr<Ints>("strides").value() ==
        Ints{1, 2, 2, 1});
  CHECK(graph.FindNode("norm").GetAttr<std::string>("data_format").value() ==
        "NHWC");
  CHECK_FALSE(graph.FindNode("filter"));
}
TEST_CASE_FIXTURE(
    NormFixture, "a bias before the normalization is folded into the new one") {
  AddConst("filter", Constant::Of(Shape{1, 1, 1, 2}, Floats{1, 1}));
  AddConst("old", Constant::Of(Shape{2}, Floats{100, 200}));
  AddConv("Conv2D", {"x", "filter"});
  const Node bias = Add("bias", "BiasAdd", {"conv", "old"});
  bias.SetAttr("data_format", "NHWC");
  AddNorm("bias");
  CHECK(Run(rules) == "1");
  CHECK(Elements("norm/Const_1") == Floats{10 + 99, 20 + 201});
}
TEST_CASE_FIXTURE(NormFixture, "some normalizations are not folded") {
  SUBCASE("training") {
    AddConst("filter", Constant::Of(Shape{1, 1, 1, 2}, Floats{1, 1}));
    AddConv("Conv2D", {"x", "filter"});
    AddNorm("conv").SetAttr("is_training", true);
  }
  SUBCASE("a filter that is not constant") {
    AddConv("Conv2D", {"x", "w"});
    AddNorm("conv");
  }
  SUBCASE("another data_format") {
    AddConst("filter", Constant::Of(Shape{1, 1, 1, 2}, Floats{1, 1}));
    AddConv("Conv2D", {"x", "filter"});
    AddNorm("conv", "NCHW");
  }
  SUBCASE("another number of channels") {
    AddConst("filter", Constant::Of(Shape{1, 1, 1, 3}, Floats{1, 1, 1}));
    AddConv("Conv2D", {"x", "filter"});
    AddNorm("conv");
    CHECK(Explain(rules, "norm")
              .find("node 'scale' (Const) has shape [2], but there are 3 "
                    "channels") != std::string::npos);
  }
  SUBCASE("a convolution with other uses") {
    AddConst("filter", Constant::Of(Shape{1, 1, 1, 2}, Floats{1, 1}));
    AddConv("Conv2D", {"x", "filter"});
    AddNorm("conv");
    Add("other", "Neg", {"conv"});
  }
  CHECK(Run(rules) == "0");
}

TEST_CASE_FIXTURE(NormFixture,
                  "a factor per channel is folded into the filter") {
  AddConst("factors", Constant::Of(Shape{1, 1, 2}, Floats{2, 3}));
  const auto add = [&](const std::string& op, const Shape& shape) {
    AddConst("filter", Constant::Of(shape, Floats{1, 2, 3, 4}));
    AddConv(op, {"x", "filter"});
    Add("mul", "Mul", {"factors", "conv"});
  };
  SUBCASE("Conv2D") { add("Conv2D", {2, 1, 1, 2}); }
  SUBCASE("DepthwiseConv2dNative") {
    add("DepthwiseConv2dNative", {2, 1, 2, 1});
  }
  SUBCASE("another number of factors is not folded") {
    add("Conv2D", {1, 1, 1, 4});
    CHECK(Run(rules) == "0");
    return;
  }
  CHECK(Run(rules) == "1");
  CHECK(Elements("mul/Const") == Floats{2, 6, 6, 12});
  CHECK(graph.FindNode("mul").input(0).node == graph.FindNode("x"));
}

// ---- FoldPads ----
struct PadFixture : Fixture {
  void AddPad(const std::vector<int32_t>& amounts) {
    AddConst("amounts", Constant::Of(Shape{4, 2}, amounts));
    Add("pad", "Pad", {"x", "amounts"});
  }
  const Rules rules = Rules(FoldPadsRules());
};

TEST_CASE_FIXTURE(PadFixture,
                  "a Pad becomes explicit padding of the convolution") {
  std::string op;
  SUBCASE("Conv2D") { op = "Conv2D"; }
  SUBCASE("DepthwiseConv2dNative") { op = "DepthwiseConv2dNative"; }
  AddPad({0, 0, 0, 1, 2, 3, 0, 0});
  AddConv(op, {"pad", "w"});
  CHECK(Run(rules) == "1");
  CHECK(Text() == "conv = " + op + "(x, w)");
  const Node conv = graph.FindNode("conv");
  CHECK(conv.GetAttr<std::string>("padding").value() == "EXPLICIT");
  CHECK(conv.GetAttr<Ints>("explicit_paddings").value() ==
        Ints{0, 0, 0, 1, 2, 3, 0, 0});
  CHECK(conv.GetAttr<Ints>("strides").value() == Ints{1, 2, 2, 1});
  CHECK(conv.GetAttr<std::string>("data_format").value() == "NHWC");
}
TEST_CASE_FIXTURE(PadFixture, "some Pads are not folded") {
  SUBCASE("a Pad of channels") {
    AddPad({0, 0, 1, 1, 1, 1, 0, 1});
    AddConv("Conv2D", {"pad", "w"});
  }
  SUBCASE("a Pad of the batch") {
    AddPad({1, 0, 1, 1, 1, 1, 0, 0});
    AddConv("Conv2D", {"pad", "w"});
  }
  SUBCASE("a Pad of channels in NCHW") {
    AddPad({0, 0, 1, 1, 1, 1, 0, 0});
    AddConv("Conv2D", {"pad", "w"}).SetAttr("data_format", "NCHW");
  }
  SUBCASE("a Pad with negative paddings") {
    AddPad({0, 0, -1, 1, 1, 1, 0, 0});
    AddConv("Conv2D", {"pad", "w"});
  }
  SUBCASE("a Pad before a convolution that pads") {
    AddPad({0, 0, 1, 1, 1, 1, 0, 0});
    AddConv("Conv2D", {"pad", "w"}).SetAttr("padding", "SAME");
  }
  SUBCASE("a Pad that a gradient needs") {
    AddPad({0, 0, 1, 1, 1, 1, 0, 0});
    AddConv("Conv2D", {"pad", "w"});
    Add("grad", "Conv2DBackpropFilter", {"pad", "v", "x"});
  }
  SUBCASE("a Pad with paddings that are not constant") {
    Add("pad", "Pad", {"x", "v"});
    AddConv("Conv2D", {"pad", "w"});
  }
  CHECK(Run(rules) == "0");
}

// ---- CancelTransposes ----
TEST_CASE_FIXTURE(Fixture, "only transposes without an effect are removed") {
  const Rules rules(CancelTransposesRules());
  const auto add = [&](const std::vector<int32_t>& p,
                       const std::vector<int32_t>& q) {
    AddConst("p", Constant::Of(Shape{static_cast<int64_t>(p.size())}, p));
    AddConst("q", Constant::Of(Shape{static_cast<int64_t>(q.size())}, q));
    Add("t1", "Transpose", {"x", "p"});
    Add("t2", "Transpose", {"t1", "q"});
    Add("user", "Neg", {"t2"});
  };
  std::string count = "0";
  SUBCASE("inverse permutations") {
    add({0, 2, 3, 1}, {0, 3, 1, 2});
    count = "1";
  }
  SUBCASE("inverse permutations with a negative axis") {
    add({0, 2, 3, 1}, {0, -1, 1, 2});
    count = "1";
  }
  SUBCASE("the same permutation twice, which is its own inverse") {
    add({1, 0}, {1, 0});
    count = "1";
  }
  SUBCASE("two identities") {
    add({0, 1}, {0, 1});
    count = "1";
  }
  SUBCASE("the same permutation twice, which is not its own inverse") {
    add({1, 2, 0}, {1, 2, 0});
  }
  SUBCASE("permutations of different ranks") { add({1, 0}, {1, 0, 2}); }
  SUBCASE("constants that are not permutations") { add({0, 0}, {0, 0}); }
  SUBCASE("one identity") {
    add({1, 0, 2}, {0, 1, 2});
    CHECK(Run(rules) == "1");
    CHECK(Text() == "t1 = Transpose(x, p)\nuser = Neg(t1)");
    return;
  }
  CHECK(Run(rules) == count);
  if (count == "1") CHECK(Text() == "user = Neg(x)");
}

// ---- CleanCasts ----
TEST_CASE_FIXTURE(Fixture, "redundant casts are removed") {
  const Rules rules(CleanCastsRules());
  const auto run = [&](DataType a, DataType b, DataType c) {
    for (const char* name : {"user", "c2", "c1"}) {
      if (const Node node = graph.FindNode(name); node) {
        REQUIRE(graph.RemoveNode(node).ok());
      }
    }
    const auto add = [&](const char* name, const char* from, DataType source,
                         DataType target) {
      const Node cast = Add(name, "Cast", {from});
      cast.RemoveAttr("T");
      cast.SetAttr("SrcT", source);
      cast.SetAttr("DstT", target);
      cast.SetAttr("Truncate", false);
    };
    add("c1", "x", a, b);
    add("c2", "c1", b, c);
    Add("user", "Neg", {"c2"});
    return Run(rules);
  };
  using T = DataType;
  CHECK(run(T::kHalf, T::kFloat, T::kHalf) == "1");
  CHECK(Text() == "user = Neg(x)");
  CHECK(run(T::kInt8, T::kBfloat16, T::kInt8) == "1");
  CHECK(run(T::kInt32, T::kDouble, T::kInt32) == "1");
  // A single cast to the same type is removed.
  CHECK(run(T::kFloat, T::kFloat, T::kFloat) == "1");
  CHECK(run(T::kHalf, T::kFloat, T::kFloat) == "1");
  CHECK(Text() == "c1 = Cast(x)\nuser = Neg(c1)");
  // Values are lost, or the result has another type.
  CHECK(run(T::kFloat, T::kHalf, T::kFloat) == "0");
  CHECK(run(T::kInt32, T::kFloat, T::kInt32) == "0");
  CHECK(run(T::kInt64, T::kDouble, T::kInt64) == "0");
  CHECK(run(T::kHalf, T::kBfloat16, T::kHalf) == "0");
  CHECK(run(T::kHalf, T::kFloat, T::kDouble) == "0");
  CHECK(run(T::kInt8, T::kUint8, T::kInt8) == "0");
  CHECK(run(T::kFloat, T::kBool, T::kFloat) == "0");
}
TEST_CASE("a cast is lossless if the new type holds every value") {
  using T = DataType;
  CHECK(IsLosslessCast(T::kUint8, T::kInt16));
  CHECK_FALSE(IsLosslessCast(T::kUint8, T::kInt8));
  CHECK(IsLosslessCast(T::kUint8, T::kHalf));
  CHECK_FALSE(IsLosslessCast(T::kInt16, T::kHalf));
  CHECK(IsLosslessCast(T::kBfloat16, T::kFloat));
  CHECK_FALSE(IsLosslessCast(T::kBfloat16, T::kHalf));
  CHECK_FALSE(IsLosslessCast(T::kFloat, T::kInt64));
  CHECK_FALSE(IsLosslessCast(T::kString, T::kString));
}

}  // namespace
}  // namespace tfplug::passes_test
