// SPDX-License-Identifier: Apache-2.0
#include <tfplug/passes/cancel_transposes.h>
#include <tfplug/passes/clean_casts.h>
#include <tfplug/passes/fold_batch_norm.h>
#include <tfplug/passes/fold_pads.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "passes/passes_fixture.h"

namespace tfplug::passes_test {
namespace {

using Fixture = PassesFixture;

// ---- FoldBatchNorm ----
struct NormFixture : Fixture {
  NormFixture() {
    Add(R"(scale: float[2] = [2, 3]
           offset: float[2] = [10, 20]
           mean: float[2] = [1, -1]
           variance: float[2] = [3.75, 8.75])");
  }
  const Rules rules = Rules(FoldBatchNormRules());
};

TEST_CASE_FIXTURE(NormFixture, "a normalization is folded into the filter") {
  std::string op, type;
  SUBCASE("Conv2D, by output channel") {
    op = "Conv2D";
    type = "float[2,1,1,2]";
  }
  SUBCASE("DepthwiseConv2dNative, by input channel and multiplier") {
    op = "DepthwiseConv2dNative";
    type = "float[2,1,2,1]";
  }
  Add("filter: " + type + " = [1, 2, 3, 4]");
  AddConv(op, "x, filter");
  AddNorm("conv");
  // 1 / sqrt(variance + epsilon) is 1/2 and 1/3: the factors are 1 and 1.
  Constant::Of(Shape{2}, Floats{4, 9}).Write((*this)["scale"]);
  CHECK(Run(rules) == "1");
  const std::string conv = "norm/" + op;
  CHECK(Compare(absl::StrCat(
            "norm = BiasAdd(", conv, ", norm/Const_1) {data_format=\"NHWC\"}\n",
            "norm/Const_1: float[2] = [8, 23]\n", "norm/Const: ", type,
            " = [2, 6, 6, 12]\n", conv, " = ", op,
            "(x, norm/Const) {strides=[1, 2, 2, 1]}")) == "");
  CHECK_FALSE(graph.FindNode("filter"));
}
TEST_CASE_FIXTURE(
    NormFixture, "a bias before the normalization is folded into the new one") {
  Add(R"(filter: float[1,1,1,2] = [1, 1]
         old: float[2] = [100, 200])");
  AddConv("Conv2D", "x, filter");
  Add(R"(bias = BiasAdd(conv, old) {data_format="NHWC"})");
  AddNorm("bias");
  CHECK(Run(rules) == "1");
  CHECK(Compare("norm/Const_1: float[2] = [109, 221]\n...") == "");
}
TEST_CASE_FIXTURE(NormFixture, "some normalizations are not folded") {
  SUBCASE("training") {
    Add("filter: float[1,1,1,2] = [1, 1]");
    AddConv("Conv2D", "x, filter");
    AddNorm("conv").SetAttr("is_training", true);
  }
  SUBCASE("a filter that is not constant") {
    AddConv("Conv2D", "x, w");
    AddNorm("conv");
  }
  SUBCASE("another data_format") {
    Add("filter: float[1,1,1,2] = [1, 1]");
    AddConv("Conv2D", "x, filter");
    AddNorm("conv", "NCHW");
  }
  SUBCASE("another number of channels") {
    Add("filter: float[1,1,1,3] = [1, 1, 1]");
    AddConv("Conv2D", "x, filter");
    AddNorm("conv");
    CHECK(Explain(rules, "norm")
              .find("node 'scale' (Const) has shape [2], but there are 3 "
                    "channels") != std::string::npos);
  }
  SUBCASE("a convolution with other uses") {
    Add("filter: float[1,1,1,2] = [1, 1]");
    AddConv("Conv2D", "x, filter");
    AddNorm("conv");
    Add("other = Neg(conv)");
  }
  CHECK(Run(rules) == "0");
}

TEST_CASE_FIXTURE(NormFixture,
                  "a factor per channel is folded into the filter") {
  Add("factors: float[1,1,2] = [2, 3]");
  const auto add = [&](const std::string& op, const std::string& shape) {
    Add("filter: float[" + shape + "] = [1, 2, 3, 4]");
    AddConv(op, "x, filter");
    Add("mul = Mul(factors, conv)");
  };
  SUBCASE("Conv2D") { add("Conv2D", "2,1,1,2"); }
  SUBCASE("DepthwiseConv2dNative") { add("DepthwiseConv2dNative", "2,1,2,1"); }
  SUBCASE("another number of factors is not folded") {
    add("Conv2D", "1,1,1,4");
    CHECK(Run(rules) == "0");
    return;
  }
  CHECK(Run(rules) == "1");
  const Node mul = (*this)["mul"];
  CHECK(Constant::Read((*this)["mul/Const"])->GetElements<float>().value() ==
        Floats{2, 6, 6, 12});
  CHECK(mul.input(0).node == (*this)["x"]);
}

// ---- FoldPads ----
struct PadFixture : Fixture {
  void AddPad(const std::string& amounts) {
    Add("amounts: int32[4,2] = [" + amounts + "]\npad = Pad(x, amounts)");
  }
  const Rules rules = Rules(FoldPadsRules());
};

TEST_CASE_FIXTURE(PadFixture,
                  "a Pad becomes explicit padding of the convolution") {
  std::string op;
  SUBCASE("Conv2D") { op = "Conv2D"; }
  SUBCASE("DepthwiseConv2dNative") { op = "DepthwiseConv2dNative"; }
  AddPad("0, 0, 0, 1, 2, 3, 0, 0");
  AddConv(op, "pad, w");
  CHECK(Run(rules) == "1");
  CHECK(Compare("conv = " + op + R"((x, w) {
      padding="EXPLICIT", explicit_paddings=[0, 0, 0, 1, 2, 3, 0, 0],
      strides=[1, 2, 2, 1], data_format="NHWC"})") == "");
}
TEST_CASE_FIXTURE(PadFixture, "some Pads are not folded") {
  SUBCASE("a Pad of channels") {
    AddPad("0, 0, 1, 1, 1, 1, 0, 1");
    AddConv("Conv2D", "pad, w");
  }
  SUBCASE("a Pad of the batch") {
    AddPad("1, 0, 1, 1, 1, 1, 0, 0");
    AddConv("Conv2D", "pad, w");
  }
  SUBCASE("a Pad of channels in NCHW") {
    AddPad("0, 0, 1, 1, 1, 1, 0, 0");
    AddConv("Conv2D", "pad, w").SetAttr("data_format", "NCHW");
  }
  SUBCASE("a Pad with negative paddings") {
    AddPad("0, 0, -1, 1, 1, 1, 0, 0");
    AddConv("Conv2D", "pad, w");
  }
  SUBCASE("a Pad before a convolution that pads") {
    AddPad("0, 0, 1, 1, 1, 1, 0, 0");
    AddConv("Conv2D", "pad, w").SetAttr("padding", "SAME");
  }
  SUBCASE("a Pad that a gradient needs") {
    AddPad("0, 0, 1, 1, 1, 1, 0, 0");
    AddConv("Conv2D", "pad, w");
    Add("grad = Conv2DBackpropFilter(pad, v, x)");
  }
  SUBCASE("a Pad with paddings that are not constant") {
    Add("pad = Pad(x, v)");
    AddConv("Conv2D", "pad, w");
  }
  CHECK(Run(rules) == "0");
}

// ---- CancelTransposes ----
TEST_CASE_FIXTURE(Fixture, "only transposes without an effect are removed") {
  const Rules rules(CancelTransposesRules());
  const auto add = [&](const std::string& p, const std::string& q) {
    Add("p: int32 = [" + p + "]\nq: int32 = [" + q + "]");
    Add(R"(t1 = Transpose(x, p)
           t2 = Transpose(t1, q)
           user = Neg(t2))");
  };
  std::string count = "0";
  SUBCASE("inverse permutations") {
    add("0, 2, 3, 1", "0, 3, 1, 2");
    count = "1";
  }
  SUBCASE("inverse permutations with a negative axis") {
    add("0, 2, 3, 1", "0, -1, 1, 2");
    count = "1";
  }
  SUBCASE("the same permutation twice, which is its own inverse") {
    add("1, 0", "1, 0");
    count = "1";
  }
  SUBCASE("two identities") {
    add("0, 1", "0, 1");
    count = "1";
  }
  SUBCASE("the same permutation twice, which is not its own inverse") {
    add("1, 2, 0", "1, 2, 0");
  }
  SUBCASE("permutations of different ranks") { add("1, 0", "1, 0, 2"); }
  SUBCASE("constants that are not permutations") { add("0, 0", "0, 0"); }
  SUBCASE("one identity") {
    add("1, 0, 2", "0, 1, 2");
    CHECK(Run(rules) == "1");
    CHECK(Compare(R"(t1 = Transpose(x, p)
                     user = Neg(t1))") == "");
    return;
  }
  CHECK(Run(rules) == count);
  if (count == "1") CHECK(Compare("user = Neg(x)") == "");
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
    const auto attrs = [](DataType from, DataType to) {
      return absl::StrCat(" {!T, Truncate=false, SrcT=", DataTypeName(from),
                          ", DstT=", DataTypeName(to), "}\n");
    };
    Add("c1 = Cast(x)" + attrs(a, b) + "c2 = Cast(c1)" + attrs(b, c) +
        "user = Neg(c2)");
    return Run(rules);
  };
  using T = DataType;
  CHECK(run(T::kHalf, T::kFloat, T::kHalf) == "1");
  CHECK(Compare("user = Neg(x)") == "");
  CHECK(run(T::kInt8, T::kBfloat16, T::kInt8) == "1");
  CHECK(run(T::kInt32, T::kDouble, T::kInt32) == "1");
  // A single cast to the same type is removed.
  CHECK(run(T::kFloat, T::kFloat, T::kFloat) == "1");
  CHECK(run(T::kHalf, T::kFloat, T::kFloat) == "1");
  CHECK(Compare(R"(c1 = Cast(x)
                   user = Neg(c1))") == "");
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
