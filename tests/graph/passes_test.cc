// SPDX-License-Identifier: Apache-2.0
#include <tfplug/kernel.h>
#include <tfplug/passes/cancel_transposes.h>
#include <tfplug/passes/clean_casts.h>
#include <tfplug/passes/fold_batch_norm.h>
#include <tfplug/passes/fold_pads.h>
#include <tfplug/passes/fusion.h>
#include <tfplug/register_kernel.h>

#include <cmath>
#include <string>
#include <vector>

#include "rules_fixture.h"

namespace tfplug {
namespace {

class Nothing : public Kernel {
 public:
  absl::Status Compute(KernelContext&) override { return absl::OkStatus(); }
};
TFPLUG_REGISTER_KERNEL(Nothing, ops::FusedMatMul_().T<float>().Device("SIM"));
TFPLUG_REGISTER_KERNEL(Nothing, ops::FusedConv2D_().T<float>().Device("SIM"));
TFPLUG_REGISTER_KERNEL(Nothing, ops::Conv2D().T<float>().Device("SIM"));
TFPLUG_REGISTER_KERNEL(Nothing, ops::BiasAdd().T<float>().Device("SIM"));
TFPLUG_REGISTER_KERNEL(Nothing,
                       ops::DepthwiseConv2dNative().T<float>().Device("SIM"));
TFPLUG_REGISTER_KERNEL(
    Nothing, ops::FusedDepthwiseConv2dNative_().T<float>().Device("SIM"));

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

struct Fixture : RulesFixture {
  Fixture() {
    DefineOp("_FusedMatMul",
             {"T: type", "transpose_a: bool", "transpose_b: bool",
              "num_args: int", "fused_ops: list(string)", "epsilon: float",
              "leakyrelu_alpha: float"});
    const std::vector<std::string> conv = {
        "T: type", "strides: list(int)", "padding: string",
        "data_format: string", "dilations: list(int)"};
    auto with = [&conv](std::vector<std::string> more) {
      more.insert(more.end(), conv.begin(), conv.end());
      return more;
    };
    DefineOp("Conv2D",
             with({"explicit_paddings: list(int)", "use_cudnn_on_gpu: bool"}));
    DefineOp("DepthwiseConv2dNative", with({"explicit_paddings: list(int)"}));
    const std::vector<std::string> fused = {
        "num_args: int", "fused_ops: list(string)", "epsilon: float",
        "leakyrelu_alpha: float"};
    std::vector<std::string> all = with(fused);
    DefineOp("_FusedDepthwiseConv2dNative", all);
    all.insert(all.end(), {"explicit_paddings: list(int)",
                           "use_cudnn_on_gpu: bool", "TArgs: list(type)"});
    DefineOp("_FusedConv2D", all);
    DefineOp("BiasAdd", {"T: type", "data_format: string"});
    for (const char* name : {"x", "w", "b", "v"}) Add(name, "Placeholder");
  }

  Node AddConv(const std::string& op, const std::vector<std::string>& inputs) {
    const Node conv = Add("conv", op, inputs);
    conv.SetAttr("strides", Ints{1, 2, 2, 1});
    conv.SetAttr("dilations", Ints{1, 1, 1, 1});
    conv.SetAttr("padding", "VALID");
    conv.SetAttr("data_format", "NHWC");
    conv.SetAttr("explicit_paddings", Ints{});
    return conv;
  }
  Node AddBias(const std::string& name, const std::string& value) {
    const Node bias = Add(name, "BiasAdd", {value, "b"});
    bias.SetAttr("data_format", "NHWC");
    return bias;
  }
  Node AddNorm(const std::string& value, const std::string& format = "NHWC") {
    const Node norm = Add("norm", "FusedBatchNormV3",
                          {value, "scale", "offset", "mean", "variance"});
    norm.SetAttr("U", DataType::kFloat);
    norm.SetAttr("is_training", false);
    norm.SetAttr("data_format", format);
    norm.SetAttr("epsilon", 0.25f);
    return norm;
  }
  void State(const std::string& node, const Shape& shape) {
    context().properties().StateOutputs(node, {{DataType::kFloat, shape}});
  }
  std::string FusedOps(const std::string& node) {
    return absl::StrJoin(graph.FindNode(node)
                             .GetAttr<std::vector<std::string>>("fused_ops")
                             .value(),
                         "+");
  }
};

// ---- Fusion
// ------------------------------------------------------------------

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
TEST_CASE_FIXTURE(Fixture, "only activations that the kernels know") {
  const Rules rules(FusionRules({"Relu"}));
  Add("product", "MatMul", {"x", "w"});
  AddBias("bias", "product");
  Add("elu", "Elu", {"bias"});
  CHECK(Run(rules) == "1");
  CHECK(Text() == "bias = _FusedMatMul(x, w, b)\nelu = Elu(bias)");
}
TEST_CASE_FIXTURE(Fixture, "no kernel for the type") {
  const Rules rules(FusionRules());
  Add("product", "MatMul", {"x", "w"}).SetAttr("T", DataType::kDouble);
  AddBias("bias", "product");
  CHECK(Run(rules) == "0");
}

TEST_CASE_FIXTURE(Fixture, "a sum is a bias if its shape says so") {
  const Rules rules(FusionRules());
  Add("product", "MatMul", {"x", "w"});
  SUBCASE("a vector, on either side") {
    Add("sum", "AddV2", {"b", "product"});
    State("product", {-1, 5});
    State("b", {5});
  }
  SUBCASE("reshaped to a row") {
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
TEST_CASE_FIXTURE(Fixture, "a sum that is no bias") {
  const Rules rules(FusionRules());
  Add("product", "MatMul", {"x", "w"});
  Add("sum", "AddV2", {"product", "b"});
  SUBCASE("unknown") {}
  SUBCASE("a scalar") {
    State("product", {-1, 5});
    State("b", Shape{});
  }
  SUBCASE("one element, broadcast") {
    State("product", {-1, 5});
    State("b", {1});
  }
  SUBCASE("a matrix of one row, which is no bias") {
    State("product", {-1, 5});
    State("b", {1, 5});
  }
  SUBCASE("a column") {
    State("product", {5, 5});
    State("b", {5, 1});
  }
  SUBCASE("of a depth that is not known") {
    State("product", {-1, -1});
    State("b", {-1});
  }
  CHECK(Run(rules) == "0");
}
TEST_CASE_FIXTURE(Fixture, "a sum that has more dimensions than the product") {
  const Rules rules(FusionRules());
  Add("product", "MatMul", {"x", "w"});
  AddConst("rows", Constant::Of(Shape{1, 1, 2}, Floats{1, 2}));
  Add("sum", "AddV2", {"product", "rows"});
  State("product", {-1, 2});
  CHECK(Run(rules) == "0");
}

TEST_CASE_FIXTURE(Fixture, "convolutions") {
  const Rules rules(FusionRules());
  std::string fused;
  SUBCASE("Conv2D") {
    AddConv("Conv2D", {"x", "w"});
    fused = "_FusedConv2D";
  }
  SUBCASE("depthwise") {
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
TEST_CASE_FIXTURE(Fixture, "convolutions that are not fused") {
  const Rules rules(FusionRules());
  SUBCASE("channels first") {
    AddConv("Conv2D", {"x", "w"}).SetAttr("data_format", "NCHW");
    AddBias("bias", "conv");
  }
  SUBCASE("a bias of channels first") {
    AddConv("Conv2D", {"x", "w"});
    AddBias("bias", "conv").SetAttr("data_format", "NCHW");
  }
  SUBCASE("depthwise with explicit paddings") {
    AddConv("DepthwiseConv2dNative", {"x", "w"}).SetAttr("padding", "EXPLICIT");
    AddBias("bias", "conv");
  }
  CHECK(Run(rules) == "0");
}
TEST_CASE_FIXTURE(Fixture, "a convolution and its normalisation") {
  const Rules rules(FusionRules());
  for (const char* name : {"scale", "offset", "mean", "variance"}) {
    Add(name, "Placeholder");
  }
  AddConv("Conv2D", {"x", "w"});
  const Node norm = AddNorm("conv");
  Add("relu", "Relu", {"norm"});
  SUBCASE("of inference") {
    CHECK(Run(rules) == "1");
    CHECK(Text() == "relu = _FusedConv2D(x, w, scale, offset, mean, variance)");
    CHECK(FusedOps("relu") == "FusedBatchNorm+Relu");
    const Node fused = graph.FindNode("relu");
    CHECK(fused.GetAttr<float>("epsilon").value() == 0.25f);
    CHECK(fused.GetAttr<int64_t>("num_args").value() == 4);
    CHECK(fused.GetAttr<std::vector<DataType>>("TArgs")->size() == 4);
  }
  SUBCASE("of training") {
    norm.SetAttr("is_training", true);
    CHECK(Run(rules) == "0");
  }
  SUBCASE("whose statistics are used") {
    Add("mean2", "Neg", {"norm:1"});
    CHECK(Run(rules) == "0");
  }
}

// ---- FoldBatchNorm
// -----------------------------------------------------------

struct NormFixture : Fixture {
  NormFixture() {
    AddConst("scale", Constant::Of(Shape{2}, Floats{2, 3}));
    AddConst("offset", Constant::Of(Shape{2}, Floats{10, 20}));
    AddConst("mean", Constant::Of(Shape{2}, Floats{1, -1}));
    AddConst("variance", Constant::Of(Shape{2}, Floats{3.75f, 8.75f}));
  }
  Floats Elements(const std::string& name) {
    return Constant::Read(graph.FindNode(name))->elements<float>().value();
  }
  const Rules rules = Rules(FoldBatchNormRules());
};

TEST_CASE_FIXTURE(NormFixture, "a normalisation becomes part of the filter") {
  std::string op;
  Shape shape;
  SUBCASE("by output channel") {
    op = "Conv2D";
    shape = {2, 1, 1, 2};
  }
  SUBCASE("depthwise, by input channel and multiple") {
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
TEST_CASE_FIXTURE(NormFixture, "a bias before it becomes part of the new one") {
  AddConst("filter", Constant::Of(Shape{1, 1, 1, 2}, Floats{1, 1}));
  AddConst("old", Constant::Of(Shape{2}, Floats{100, 200}));
  AddConv("Conv2D", {"x", "filter"});
  const Node bias = Add("bias", "BiasAdd", {"conv", "old"});
  bias.SetAttr("data_format", "NHWC");
  AddNorm("bias");
  CHECK(Run(rules) == "1");
  CHECK(Elements("norm/Const_1") == Floats{10 + 99, 20 + 201});
}
TEST_CASE_FIXTURE(NormFixture, "normalisations that are not folded") {
  SUBCASE("of training") {
    AddConst("filter", Constant::Of(Shape{1, 1, 1, 2}, Floats{1, 1}));
    AddConv("Conv2D", {"x", "filter"});
    AddNorm("conv").SetAttr("is_training", true);
  }
  SUBCASE("of a filter that is not known") {
    AddConv("Conv2D", {"x", "w"});
    AddNorm("conv");
  }
  SUBCASE("of channels elsewhere") {
    AddConst("filter", Constant::Of(Shape{1, 1, 1, 2}, Floats{1, 1}));
    AddConv("Conv2D", {"x", "filter"});
    AddNorm("conv", "NCHW");
  }
  SUBCASE("of another number of channels") {
    AddConst("filter", Constant::Of(Shape{1, 1, 1, 3}, Floats{1, 1, 1}));
    AddConv("Conv2D", {"x", "filter"});
    AddNorm("conv");
    CHECK(Explain(rules, "norm")
              .find("'scale' is of shape [2], and there are 3 channels") !=
          std::string::npos);
  }
  SUBCASE("of a convolution that is used elsewhere") {
    AddConst("filter", Constant::Of(Shape{1, 1, 1, 2}, Floats{1, 1}));
    AddConv("Conv2D", {"x", "filter"});
    AddNorm("conv");
    Add("other", "Neg", {"conv"});
  }
  CHECK(Run(rules) == "0");
}

TEST_CASE_FIXTURE(NormFixture, "a factor for each channel") {
  AddConst("factors", Constant::Of(Shape{1, 1, 2}, Floats{2, 3}));
  const auto add = [&](const std::string& op, const Shape& shape) {
    AddConst("filter", Constant::Of(shape, Floats{1, 2, 3, 4}));
    AddConv(op, {"x", "filter"});
    Add("mul", "Mul", {"factors", "conv"});
  };
  SUBCASE("by output channel") { add("Conv2D", {2, 1, 1, 2}); }
  SUBCASE("depthwise") { add("DepthwiseConv2dNative", {2, 1, 2, 1}); }
  SUBCASE("not for each channel") {
    add("Conv2D", {1, 1, 1, 4});
    CHECK(Run(rules) == "0");
    return;
  }
  CHECK(Run(rules) == "1");
  CHECK(Elements("mul/Const") == Floats{2, 6, 6, 12});
  CHECK(graph.FindNode("mul").input(0).node == graph.FindNode("x"));
}

// ---- FoldPads
// ----------------------------------------------------------------

struct PadFixture : Fixture {
  void AddPad(const std::vector<int32_t>& amounts) {
    AddConst("amounts", Constant::Of(Shape{4, 2}, amounts));
    Add("pad", "Pad", {"x", "amounts"});
  }
  const Rules rules = Rules(FoldPadsRules());
};

TEST_CASE_FIXTURE(PadFixture, "a convolution pads for itself") {
  std::string op;
  SUBCASE("Conv2D") { op = "Conv2D"; }
  SUBCASE("depthwise") { op = "DepthwiseConv2dNative"; }
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
TEST_CASE_FIXTURE(PadFixture, "pads that stay") {
  SUBCASE("of channels") {
    AddPad({0, 0, 1, 1, 1, 1, 0, 1});
    AddConv("Conv2D", {"pad", "w"});
  }
  SUBCASE("of the batch") {
    AddPad({1, 0, 1, 1, 1, 1, 0, 0});
    AddConv("Conv2D", {"pad", "w"});
  }
  SUBCASE("of columns, where those are channels") {
    AddPad({0, 0, 1, 1, 1, 1, 0, 0});
    AddConv("Conv2D", {"pad", "w"}).SetAttr("data_format", "NCHW");
  }
  SUBCASE("that take away") {
    AddPad({0, 0, -1, 1, 1, 1, 0, 0});
    AddConv("Conv2D", {"pad", "w"});
  }
  SUBCASE("with more padding after it") {
    AddPad({0, 0, 1, 1, 1, 1, 0, 0});
    AddConv("Conv2D", {"pad", "w"}).SetAttr("padding", "SAME");
  }
  SUBCASE("that a gradient needs") {
    AddPad({0, 0, 1, 1, 1, 1, 0, 0});
    AddConv("Conv2D", {"pad", "w"});
    Add("grad", "Conv2DBackpropFilter", {"pad", "v", "x"});
  }
  SUBCASE("that are not known") {
    Add("pad", "Pad", {"x", "v"});
    AddConv("Conv2D", {"pad", "w"});
  }
  CHECK(Run(rules) == "0");
}

// ---- CancelTransposes
// --------------------------------------------------------

TEST_CASE_FIXTURE(Fixture, "transposes that undo each other") {
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
  SUBCASE("inverse") {
    add({0, 2, 3, 1}, {0, 3, 1, 2});
    count = "1";
  }
  SUBCASE("counted from the end") {
    add({0, 2, 3, 1}, {0, -1, 1, 2});
    count = "1";
  }
  SUBCASE("the same twice, which is its inverse") {
    add({1, 0}, {1, 0});
    count = "1";
  }
  SUBCASE("each moves nothing") {
    add({0, 1}, {0, 1});
    count = "1";
  }
  SUBCASE("the same twice, which is not") { add({1, 2, 0}, {1, 2, 0}); }
  SUBCASE("of different ranks") { add({1, 0}, {1, 0, 2}); }
  SUBCASE("no permutation") { add({0, 0}, {0, 0}); }
  SUBCASE("one moves nothing") {
    add({1, 0, 2}, {0, 1, 2});
    CHECK(Run(rules) == "1");
    CHECK(Text() == "t1 = Transpose(x, p)\nuser = Neg(t1)");
    return;
  }
  CHECK(Run(rules) == count);
  if (count == "1") CHECK(Text() == "user = Neg(x)");
}

// ---- CleanCasts
// --------------------------------------------------------------

TEST_CASE_FIXTURE(Fixture, "casts to and fro") {
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
  // To the same type: each by itself.
  CHECK(run(T::kFloat, T::kFloat, T::kFloat) == "1");
  CHECK(run(T::kHalf, T::kFloat, T::kFloat) == "1");
  CHECK(Text() == "c1 = Cast(x)\nuser = Neg(c1)");
  // Something is lost, or another type comes out.
  CHECK(run(T::kFloat, T::kHalf, T::kFloat) == "0");
  CHECK(run(T::kInt32, T::kFloat, T::kInt32) == "0");
  CHECK(run(T::kInt64, T::kDouble, T::kInt64) == "0");
  CHECK(run(T::kHalf, T::kBfloat16, T::kHalf) == "0");
  CHECK(run(T::kHalf, T::kFloat, T::kDouble) == "0");
  CHECK(run(T::kInt8, T::kUint8, T::kInt8) == "0");
  CHECK(run(T::kFloat, T::kBool, T::kFloat) == "0");
}
TEST_CASE("which casts lose nothing") {
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
}  // namespace tfplug
