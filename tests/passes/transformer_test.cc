// SPDX-License-Identifier: Apache-2.0
#include <tfplug/passes/fuse_activations.h>
#include <tfplug/passes/fuse_attention.h>
#include <tfplug/passes/fuse_layer_norm.h>
#include <tfplug/passes/fused_ops.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "passes/passes_fixture.h"

// Tests the rules for transformers: the forms that they match, and graphs that
// differ in one point, which they must not change.
namespace tfplug::transformer_test {
namespace {

struct Fixture : PassesFixture {
  Fixture() {
    for (const char* op : {"TfplugGelu", "TfplugGeluTanh", "TfplugSilu"}) {
      DefineOp(op, {"T: type"}, {"x: T"});
    }
    DefineOp("TfplugSwiglu", {"T: type"}, {"gate: T", "x: T"});
    DefineOp("TfplugLayerNorm", {"T: type", "epsilon: float"},
             {"x: T", "gamma: T", "beta: T"}, {"y: T", "mean: T", "rstd: T"});
    DefineOp(
        "TfplugAttention",
        {"T: type", "layout: string", "scale: float", "masked_score: float",
         "num_masks: int", "num_biases: int", "num_probabilities: int"},
        {"query: T", "key: T", "value: T", "masks: num_masks * bool",
         "biases: num_biases * T"},
        {"y: T", "probabilities: num_probabilities * T"});
    DefineOp("Transpose", {"T: type", "Tperm: type"}, {"x: T", "perm: Tperm"});
    DefineOp("Placeholder", {"T: type"});
    for (const char* op : {"Mul", "AddV2", "Softmax", "Rsqrt", "Mean"}) {
      DefineOp(op, {"T: type"});
    }
    for (const char* name : {"y", "gamma", "beta", "q", "k", "mask"}) {
      Add(name, "Placeholder");
    }
  }
  // Adds nodes, given one per line as "name = Op(input, input)", or as
  // "name = 0.5" for a constant.
  void Build(const std::string& lines) {
    for (absl::string_view line : absl::StrSplit(lines, '\n')) {
      const std::vector<std::string> sides = absl::StrSplit(line, " = ");
      const std::string &name = sides[0], &right = sides[1];
      const size_t open = right.find('(');
      if (open == right.npos) {
        AddConst(name, Constant::Of(Shape{}, Floats{std::stof(right)}));
        continue;
      }
      const std::string arguments =
          right.substr(open + 1, right.size() - open - 2);
      Add(name, right.substr(0, open), absl::StrSplit(arguments, ", "));
    }
  }
};

// ---- Activations ------------------------------------------------------------

struct ActivationFixture : Fixture {
  const Rules rules = Rules(FuseActivationsRules());
  const std::string constants =
      "half = 0.5\none = 1\nroot = 0.70710678\ntwo = 1.41421356\n"
      "minus = -0.70710678\nc = 0.044715\nd = 0.7978846\nthree = 3\n";
};

TEST_CASE_FIXTURE(ActivationFixture, "exact GELU") {
  SUBCASE("Keras 2") {
    Build(constants +
          "s = Mul(root, x)\ne = Erf(s)\na = AddV2(e, one)\n"
          "h = Mul(a, half)\nf = Mul(x, h)");
  }
  SUBCASE("Keras 3") {
    Build(constants +
          "n = Neg(x)\ns = Mul(root, n)\ne = Erfc(s)\nh = Mul(e, half)\n"
          "f = Mul(x, h)");
  }
  SUBCASE("as traced") {
    Build(constants +
          "h = Mul(half, x)\ns = RealDiv(x, two)\ne = Erf(s)\n"
          "a = AddV2(one, e)\nf = Mul(h, a)");
  }
  SUBCASE("half of the product") {
    Build(constants +
          "s = Mul(x, minus)\ne = Erfc(s)\np = Mul(x, e)\n"
          "f = Mul(p, half)");
  }
  CHECK(Run(rules) == "1");
  CHECK(Text() == "f = TfplugGelu(x)");
  CHECK((*this)["f"].GetAttr<DataType>("T").value() == DataType::kFloat);
}
TEST_CASE_FIXTURE(ActivationFixture, "GELU with tanh") {
  const std::string rest =
      "g = Mul(c, cube)\ni = AddV2(x, g)\nj = Mul(i, d)\nt = Tanh(j)\n"
      "a = AddV2(t, one)\nh = Mul(a, half)\nf = Mul(x, h)";
  SUBCASE("by Pow") { Build(constants + "cube = Pow(x, three)\n" + rest); }
  SUBCASE("by Square") {
    Build(constants + "s = Square(x)\ncube = Mul(s, x)\n" + rest);
  }
  SUBCASE("by Mul") {
    Build(constants + "s = Mul(x, x)\ncube = Mul(x, s)\n" + rest);
  }
  CHECK(Run(rules) == "1");
  CHECK(Text() == "f = TfplugGeluTanh(x)");
}
TEST_CASE_FIXTURE(ActivationFixture, "almost GELU") {
  const std::string erf = "e = Erf(s)\na = AddV2(e, one)\n";
  SUBCASE("another factor") {
    Build(constants + "s = Mul(half, x)\n" + erf +
          "h = Mul(a, half)\nf = Mul(x, h)");
  }
  SUBCASE("another summand") {
    Build(constants + "s = Mul(root, x)\ne = Erf(s)\na = AddV2(e, half)\n" +
          "h = Mul(a, half)\nf = Mul(x, h)");
  }
  SUBCASE("not halved") {
    Build(constants + "s = Mul(root, x)\n" + erf +
          "h = Mul(a, one)\nf = Mul(x, h)");
  }
  SUBCASE("of two values") {
    Build(constants + "s = Mul(root, x)\n" + erf +
          "h = Mul(a, half)\nf = Mul(y, h)");
  }
  SUBCASE("an intermediate value is used elsewhere") {
    Build(constants + "s = Mul(root, x)\n" + erf +
          "h = Mul(a, half)\nf = Mul(x, h)\ngrad = Exp(s)");
  }
  SUBCASE("a power of 2") {
    Build(constants +
          "cube = Pow(x, one)\ng = Mul(c, cube)\ni = AddV2(x, g)\n"
          "j = Mul(i, d)\nt = Tanh(j)\na = AddV2(t, one)\nh = Mul(a, half)\n"
          "f = Mul(x, h)");
  }
  SUBCASE("a type without a kernel") {
    Build(constants + "s = Mul(root, x)\n" + erf +
          "h = Mul(a, half)\nf = Mul(x, h)");
    (*this)["x"].SetAttr("T", DataType::kDouble);
  }
  CHECK(Run(rules) == "0");
}
TEST_CASE_FIXTURE(ActivationFixture, "SiLU and SwiGLU") {
  Build("s = Sigmoid(x)\nf = Mul(s, x)");
  SUBCASE("SiLU") {
    CHECK(Run(rules) == "1");
    CHECK(Text() == "f = TfplugSilu(x)");
  }
  SUBCASE("SwiGLU") {
    Build("g = Mul(y, f)");
    CHECK(Run(rules) == "1");
    CHECK(Text() == "g = TfplugSwiglu(x, y)");
  }
  SUBCASE("SwiGLU whose gate is used elsewhere") {
    Build("g = Mul(y, f)\nh = Neg(f)");
    CHECK(Run(rules) == "1");
    CHECK(Text() == "f = TfplugSilu(x)\ng = Mul(y, f)\nh = Neg(f)");
  }
  SUBCASE("SwiGLU of an earlier run's SiLU") {
    CHECK(Run(rules) == "1");
    Build("g = Mul(f, y)");
    CHECK(Run(rules) == "1");
    CHECK(Text() == "g = TfplugSwiglu(x, y)");
  }
}
TEST_CASE_FIXTURE(ActivationFixture, "almost SiLU") {
  SUBCASE("of two values") { Build("s = Sigmoid(x)\nf = Mul(s, y)"); }
  SUBCASE("another function") { Build("s = Tanh(x)\nf = Mul(s, x)"); }
  SUBCASE("whose sigmoid is used elsewhere") {
    Build("s = Sigmoid(x)\nf = Mul(s, x)\ng = Neg(s)");
  }
  CHECK(Run(rules) == "0");
}

// ---- Layer normalization ----------------------------------------------------

struct NormFixture : Fixture {
  NormFixture() {
    State("x", {-1, 7, 4});
    State("gamma", {4});
    State("beta", {4});
    State("row_gamma", {1, 1, 4});
    State("row_beta", {1, 1, 4});
    AddConst("axis", Constant::Of(Shape{1}, std::vector<int32_t>{-1}));
    Build(
        "eps = 0.001\nrow_gamma = Reshape(gamma, w)\n"
        "row_beta = Reshape(beta, w)\nmean = Mean(x, axis)\nneg = Neg(mean)\n"
        "sq = SquaredDifference(mean, x)\nvar = Mean(sq, axis)\n"
        "add = AddV2(eps, var)\nrstd = Rsqrt(add)\n"
        "scale = Mul(row_gamma, rstd)\noff = Mul(neg, scale)\n"
        "val = Mul(scale, x)");
    for (const char* mean : {"mean", "var"}) {
      (*this)[mean].SetAttr("keep_dims", true);
    }
  }
  const Rules rules = Rules(FuseLayerNormRules());
};

TEST_CASE_FIXTURE(NormFixture, "layer normalization of Keras 3") {
  SUBCASE("after TensorFlow's rewriting") {
    Build("sum = AddN(off, val)\nf = AddV2(sum, row_beta)");
  }
  SUBCASE("as traced") {
    Build("sum = AddV2(off, row_beta)\nf = AddV2(val, sum)");
  }
  SUBCASE("with vectors") {
    CHECK((*this)["scale"].SetInput(0, (*this)["gamma"]).ok());
    CHECK(graph.RemoveNode((*this)["row_gamma"]).ok());
    Build("sum = AddN(off, val)\nf = AddV2(sum, beta)");
    CHECK(graph.RemoveNode((*this)["row_beta"]).ok());
  }
  CHECK(Run(rules) == "1");
  CHECK(Text() == "f = TfplugLayerNorm(x, gamma, beta)");
  CHECK((*this)["f"].GetAttr<float>("epsilon").value() == 0.001f);
}
TEST_CASE_FIXTURE(NormFixture, "the statistics that a gradient uses") {
  Build(
      "sum = AddN(off, val)\nf = AddV2(sum, row_beta)\ng1 = Exp(rstd)\n"
      "g2 = Exp(neg)\ng3 = Exp(scale)\ng4 = Exp(mean)");
  CHECK(Run(rules) == "1");
  CHECK(Text() ==
        "f = TfplugLayerNorm(x, gamma, beta)\n"
        "g1 = Exp(f:2)\ng2 = Exp(neg)\ng3 = Exp(scale)\ng4 = Exp(f:1)\n"
        "neg = Neg(f:1)\nrow_gamma = Reshape(gamma, w)\n"
        "scale = Mul(row_gamma, f:2)");
}
TEST_CASE_FIXTURE(NormFixture, "almost layer normalization") {
  const std::string end = "\nsum = AddN(off, val)\nf = AddV2(sum, row_beta)";
  SUBCASE("over another axis") {
    Build("q2 = Neg(q)" + end);
    const Constant axis = Constant::Of(Shape{1}, std::vector<int32_t>{1});
    axis.Write((*this)["axis"]);
  }
  SUBCASE("of unknown rank") {
    Build("q2 = Neg(q)" + end);
    context().properties().Forget("x");
  }
  SUBCASE("without keep_dims") {
    Build("q2 = Neg(q)" + end);
    (*this)["mean"].SetAttr("keep_dims", false);
  }
  SUBCASE("a gamma for every column") {
    Build("q2 = Neg(q)" + end);
    State("gamma", {7});
    State("row_gamma", {1, 7, 1});
  }
  SUBCASE("the variance about another mean") {
    Build("q2 = Neg(q)" + end);
    CHECK((*this)["sq"].SetInput(0, (*this)["y"]).ok());
  }
  SUBCASE("the offset of another scale") {
    Build("other = Mul(row_gamma, y)" + end);
    CHECK((*this)["off"].SetInput(1, (*this)["other"]).ok());
  }
  SUBCASE("an inner value is used elsewhere") { Build("g = Exp(val)" + end); }
  CHECK(Run(rules) == "0");
}

TEST_CASE_FIXTURE(Fixture, "layer normalization of Keras 2") {
  const Rules rules(FuseLayerNormRules());
  State("x", {2, 7, 4});
  for (const char* vector : {"gamma", "beta"}) State(vector, {4});
  State("flat", {1, 14, 4, 1});
  State("shaped", {2, 7, 4});
  AddConst("to", Constant::Of(Shape{4}, std::vector<int32_t>{1, 14, 4, 1}));
  AddConst("back", Constant::Of(Shape{3}, std::vector<int32_t>{2, 7, 4}));
  AddConst("ones", Constant::Of(Shape{14}, Floats(14, 1)));
  AddConst("zeros", Constant::Of(Shape{14}, Floats(14, 0)));
  Build(
      "flat = Reshape(x, to)\n"
      "norm = FusedBatchNormV3(flat, ones, zeros, b, b)\n"
      "shaped = Reshape(norm, back)\nval = Mul(shaped, gamma)\n"
      "f = AddV2(beta, val)");
  const Node norm = (*this)["norm"];
  norm.SetAttr("is_training", true);
  norm.SetAttr("data_format", "NCHW");
  norm.SetAttr("epsilon", 0.25f);
  SUBCASE("fused") {
    CHECK(Run(rules) == "1");
    CHECK(Text() == "f = TfplugLayerNorm(x, gamma, beta)");
    CHECK((*this)["f"].GetAttr<float>("epsilon").value() == 0.25f);
    return;
  }
  SUBCASE("with a scale") {
    Constant::Of(Shape{14}, Floats(14, 2)).Write((*this)["ones"]);
  }
  SUBCASE("in inference") { norm.SetAttr("is_training", false); }
  SUBCASE("over two dimensions") { State("flat", {1, 2, 28, 1}); }
  SUBCASE("with statistics that are used") { Build("g = Neg(norm:1)"); }
  CHECK(Run(rules) == "0");
}

// ---- Attention
// ---------------------------------------------------------------

struct AttentionFixture : Fixture {
  AttentionFixture() {
    for (const char* name : {"q", "k", "v"}) State(name, {-1, 7, 2, 8});
    Build("scale = 0.25\nlow = -1000");
  }
  void SetEquation(const std::string& node, const std::string& equation) {
    (*this)[node].SetAttr("equation", equation);
  }
  const Rules rules = Rules(FuseAttentionRules());
};

TEST_CASE_FIXTURE(AttentionFixture, "attention by Einsum") {
  std::string operands = "q, k, v", scale = "0.25";
  const auto finish = [&](const std::string& scores) {
    Build("soft = Softmax(" + scores + ")\nf = Einsum(soft, v)");
    SetEquation("f", "BNTS,BSNH->BTNH");
  };
  SUBCASE("plain") {
    scale = "1";
    Build("s = Einsum(q, k)");
    SetEquation("s", "BTNH,BSNH->BNTS");
    finish("s");
  }
  SUBCASE("scaled scores and a mask") {
    State("mask", {-1, 1, 7, 7});
    Build("s = Einsum(q, k)\nm = Mul(scale, s)\nw1 = SelectV2(mask, m, low)");
    SetEquation("s", "BTNH,BSNH->BNTS");
    finish("w1");
    operands += ", mask";
  }
  SUBCASE("a scaled query, a bias, and the key first") {
    State("b", {1, 1, 7, 7});
    Build("m = Mul(q, scale)\ns = Einsum(k, m)\nw1 = AddV2(b, s)");
    SetEquation("s", "aecd,abcd->acbe");
    finish("w1");
    operands += ", b";
  }
  CHECK(Run(rules) == "1");
  CHECK(Text() == "f = TfplugAttention(" + operands + ")");
  CHECK(absl::StrCat((*this)["f"].GetAttr<float>("scale").value()) == scale);
  CHECK((*this)["f"].GetAttr<std::string>("layout").value() == "BTNH");
  const bool has_mask = operands.find("mask") != std::string::npos;
  CHECK((*this)["f"].GetAttr<int64_t>("num_masks").value() == has_mask);
  CHECK((*this)["f"].GetAttr<float>("masked_score").value() ==
        (has_mask ? -1000 : 0));
  CHECK((*this)["f"].GetAttr<int64_t>("num_probabilities").value() == 0);
}
TEST_CASE_FIXTURE(AttentionFixture, "attention whose heads come first") {
  Build("two = 2");
  std::string expected = "f = TfplugAttention(q, k, v)", scale = "1";
  SUBCASE("by Einsum") {
    Build("s = Einsum(q, k)\nsoft = Softmax(s)\nf = Einsum(soft, v)");
    SetEquation("s", "BNTH,BNSH->BNTS");
    SetEquation("f", "BNTS,BNSH->BNTH");
  }
  SUBCASE("by BatchMatMul") {
    scale = "0.5";
    Build(
        "s = BatchMatMulV2(q, k)\nm = RealDiv(s, two)\nsoft = Softmax(m)\n"
        "f = BatchMatMulV2(soft, v)");
    (*this)["s"].SetAttr("adj_x", false);
    (*this)["s"].SetAttr("adj_y", true);
    (*this)["f"].SetAttr("adj_x", false);
    (*this)["f"].SetAttr("adj_y", false);
  }
  CHECK(Run(rules) == "1");
  CHECK(Text() == expected);
  CHECK(absl::StrCat((*this)["f"].GetAttr<float>("scale").value()) == scale);
  CHECK((*this)["f"].GetAttr<std::string>("layout").value() == "BNTH");
}
TEST_CASE_FIXTURE(AttentionFixture, "attention of transposed scores") {
  AddConst("p", Constant::Of(Shape{4}, std::vector<int32_t>{0, 2, 3, 1}));
  AddConst("p2", Constant::Of(Shape{4}, std::vector<int32_t>{0, 1, 3, 2}));
  Build(
      "m = Mul(scale, q)\nt = Transpose(m, p)\ns = BatchMatMulV2(k, t)\n"
      "u = Transpose(s, p2)\nsoft = Softmax(u)\nf = BatchMatMulV2(soft, v)");
  for (const char* name : {"s", "f"}) {
    (*this)[name].SetAttr("adj_x", false);
    (*this)[name].SetAttr("adj_y", false);
  }
  SUBCASE("fused") {
    CHECK(Run(rules) == "1");
    CHECK(Text() ==
          "f = TfplugAttention(f/Transpose, k, v)\n"
          "f/Transpose = Transpose(q, f/Const)");
    CHECK((*this)["f"].GetAttr<float>("scale").value() == 0.25f);
  }
  SUBCASE("another permutation") {
    Constant::Of(Shape{4}, std::vector<int32_t>{0, 1, 3, 2})
        .Write((*this)["p"]);
    CHECK(Run(rules) == "0");
  }
}
TEST_CASE_FIXTURE(AttentionFixture, "the probabilities that a gradient uses") {
  Build(
      "s = Einsum(q, k)\nm = Mul(scale, s)\nsoft = Softmax(m)\n"
      "f = Einsum(soft, v)\ng = Mul(soft, y)");
  SetEquation("s", "BTNH,BSNH->BNTS");
  SetEquation("f", "BNTS,BSNH->BTNH");
  CHECK(Run(rules) == "1");
  CHECK(Text() == "f = TfplugAttention(q, k, v)\ng = Mul(f:1, y)");
  CHECK((*this)["f"].GetAttr<int64_t>("num_probabilities").value() == 1);
}
TEST_CASE_FIXTURE(AttentionFixture, "almost attention") {
  std::string equation = "BTNH,BSNH->BNTS", scores = "s = Einsum(q, k)",
              last = "f = Einsum(soft, v)", value = "BNTS,BSNH->BTNH";
  SUBCASE("another contraction") { equation = "BTNH,BSNH->BTNS"; }
  SUBCASE("another result") { value = "BNTS,BSNH->BNTH"; }
  SUBCASE("of unknown rank") { context().properties().Forget("k"); }
  SUBCASE("the scores are used elsewhere") { last += "\ng = Neg(s)"; }
  SUBCASE("a factor that is not a number") {
    AddConst("factors", Constant::Of(Shape{7}, Floats(7, 2)));
    scores = "s0 = Einsum(q, k)\ns = Mul(s0, factors)";
  }
  Build(scores + "\nsoft = Softmax(s)\n" + last);
  SetEquation((*this)["s0"] ? "s0" : "s", equation);
  SetEquation("f", value);
  CHECK(Run(rules) == "0");
}

TEST_CASE("equations of Einsum") {
  CHECK(passes_internal::CanonicalEquation("BTNH,BSNH->BNTS") ==
        "abcd,aecd->acbe");
  CHECK(passes_internal::CanonicalEquation("aecd, abcd -> acbe") ==
        "abcd,aecd->aceb");
}

TFPLUG_REGISTER_KERNEL(
    NoKernel, KernelDef("TfplugGelu").TypeConstraint<float>("T").Device("SIM"));
TFPLUG_REGISTER_KERNEL(
    NoKernel,
    KernelDef("TfplugGeluTanh").TypeConstraint<float>("T").Device("SIM"));
TFPLUG_REGISTER_KERNEL(
    NoKernel, KernelDef("TfplugSilu").TypeConstraint<float>("T").Device("SIM"));
TFPLUG_REGISTER_KERNEL(
    NoKernel,
    KernelDef("TfplugSwiglu").TypeConstraint<float>("T").Device("SIM"));
TFPLUG_REGISTER_KERNEL(
    NoKernel,
    KernelDef("TfplugLayerNorm").TypeConstraint<float>("T").Device("SIM"));
TFPLUG_REGISTER_KERNEL(
    NoKernel,
    KernelDef("TfplugAttention").TypeConstraint<float>("T").Device("SIM"));
TFPLUG_REGISTER_KERNEL(
    NoKernel, KernelDef("Transpose").TypeConstraint<float>("T").Device("SIM"));

}  // namespace
}  // namespace tfplug::transformer_test
