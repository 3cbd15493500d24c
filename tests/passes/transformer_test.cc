// SPDX-License-Identifier: Apache-2.0
#include <tfplug/passes/fuse_activations.h>
#include <tfplug/passes/fuse_attention.h>
#include <tfplug/passes/fuse_layer_norm.h>
#include <tfplug/passes/transformer_ops.h>

#include <string>
#include <vector>

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
    Add("y, gamma, beta, q, k, mask = Placeholder()");
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
    Add(constants +
        "s = Mul(root, x)\ne = Erf(s)\na = AddV2(e, one)\n"
        "h = Mul(a, half)\nf = Mul(x, h)");
  }
  SUBCASE("Keras 3") {
    Add(constants +
        "n = Neg(x)\ns = Mul(root, n)\ne = Erfc(s)\nh = Mul(e, half)\n"
        "f = Mul(x, h)");
  }
  SUBCASE("as traced") {
    Add(constants +
        "h = Mul(half, x)\ns = RealDiv(x, two)\ne = Erf(s)\n"
        "a = AddV2(one, e)\nf = Mul(h, a)");
  }
  SUBCASE("half of the product") {
    Add(constants +
        "s = Mul(x, minus)\ne = Erfc(s)\np = Mul(x, e)\n"
        "f = Mul(p, half)");
  }
  CHECK(Run(rules) == "1");
  CHECK(Compare("f = TfplugGelu(x) {T=float}") == "");
}
TEST_CASE_FIXTURE(ActivationFixture, "GELU with tanh") {
  const std::string rest =
      "g = Mul(c, cube)\ni = AddV2(x, g)\nj = Mul(i, d)\nt = Tanh(j)\n"
      "a = AddV2(t, one)\nh = Mul(a, half)\nf = Mul(x, h)";
  SUBCASE("by Pow") { Add(constants + "cube = Pow(x, three)\n" + rest); }
  SUBCASE("by Square") {
    Add(constants + "s = Square(x)\ncube = Mul(s, x)\n" + rest);
  }
  SUBCASE("by Mul") {
    Add(constants + "s = Mul(x, x)\ncube = Mul(x, s)\n" + rest);
  }
  CHECK(Run(rules) == "1");
  CHECK(Compare("f = TfplugGeluTanh(x)") == "");
}
TEST_CASE_FIXTURE(ActivationFixture, "almost GELU") {
  const std::string erf = "e = Erf(s)\na = AddV2(e, one)\n";
  SUBCASE("another factor") {
    Add(constants + "s = Mul(half, x)\n" + erf +
        "h = Mul(a, half)\nf = Mul(x, h)");
  }
  SUBCASE("another summand") {
    Add(constants + "s = Mul(root, x)\ne = Erf(s)\na = AddV2(e, half)\n" +
        "h = Mul(a, half)\nf = Mul(x, h)");
  }
  SUBCASE("not halved") {
    Add(constants + "s = Mul(root, x)\n" + erf +
        "h = Mul(a, one)\nf = Mul(x, h)");
  }
  SUBCASE("of two values") {
    Add(constants + "s = Mul(root, x)\n" + erf +
        "h = Mul(a, half)\nf = Mul(y, h)");
  }
  SUBCASE("an intermediate value is used elsewhere") {
    Add(constants + "s = Mul(root, x)\n" + erf +
        "h = Mul(a, half)\nf = Mul(x, h)\ngrad = Exp(s)");
  }
  SUBCASE("a power of 2") {
    Add(constants +
        "cube = Pow(x, one)\ng = Mul(c, cube)\ni = AddV2(x, g)\n"
        "j = Mul(i, d)\nt = Tanh(j)\na = AddV2(t, one)\nh = Mul(a, half)\n"
        "f = Mul(x, h)");
  }
  SUBCASE("a type without a kernel") {
    Add(constants + "s = Mul(root, x)\n" + erf +
        "h = Mul(a, half)\nf = Mul(x, h)");
    (*this)["x"].SetAttr("T", DataType::kDouble);
  }
  CHECK(Run(rules) == "0");
}
TEST_CASE_FIXTURE(ActivationFixture, "SiLU and SwiGLU") {
  Add("s = Sigmoid(x)\nf = Mul(s, x)");
  SUBCASE("SiLU") {
    CHECK(Run(rules) == "1");
    CHECK(Compare("f = TfplugSilu(x)") == "");
  }
  SUBCASE("SwiGLU") {
    Add("g = Mul(y, f)");
    CHECK(Run(rules) == "1");
    CHECK(Compare("g = TfplugSwiglu(x, y)") == "");
  }
  SUBCASE("SwiGLU whose gate is used elsewhere") {
    Add("g = Mul(y, f)\nh = Neg(f)");
    CHECK(Run(rules) == "1");
    CHECK(Compare(R"(f = TfplugSilu(x)
                     g = Mul(y, f)
                     h = Neg(f))") == "");
  }
  SUBCASE("SwiGLU of an earlier run's SiLU") {
    CHECK(Run(rules) == "1");
    Add("g = Mul(f, y)");
    CHECK(Run(rules) == "1");
    CHECK(Compare("g = TfplugSwiglu(x, y)") == "");
  }
}
TEST_CASE_FIXTURE(ActivationFixture, "almost SiLU") {
  SUBCASE("of two values") { Add("s = Sigmoid(x)\nf = Mul(s, y)"); }
  SUBCASE("another function") { Add("s = Tanh(x)\nf = Mul(s, x)"); }
  SUBCASE("whose sigmoid is used elsewhere") {
    Add("s = Sigmoid(x)\nf = Mul(s, x)\ng = Neg(s)");
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
    Add("axis: int32[1] = [-1]");
    Add("eps = 0.001\nrow_gamma = Reshape(gamma, w)\n"
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
    Add("sum = AddN(off, val)\nf = AddV2(sum, row_beta)");
  }
  SUBCASE("as traced") {
    Add("sum = AddV2(off, row_beta)\nf = AddV2(val, sum)");
  }
  SUBCASE("with vectors") {
    CHECK((*this)["scale"].SetInput(0, (*this)["gamma"]).ok());
    CHECK(graph.RemoveNode((*this)["row_gamma"]).ok());
    Add("sum = AddN(off, val)\nf = AddV2(sum, beta)");
    CHECK(graph.RemoveNode((*this)["row_beta"]).ok());
  }
  CHECK(Run(rules) == "1");
  CHECK(Compare("f = TfplugLayerNorm(x, gamma, beta) {epsilon=0.001}") == "");
}
TEST_CASE_FIXTURE(NormFixture, "the statistics that a gradient uses") {
  Add("sum = AddN(off, val)\nf = AddV2(sum, row_beta)\ng1 = Exp(rstd)\n"
      "g2 = Exp(neg)\ng3 = Exp(scale)\ng4 = Exp(mean)");
  CHECK(Run(rules) == "1");
  CHECK(Compare(R"(f = TfplugLayerNorm(x, gamma, beta)
                   g1 = Exp(f:2)
                   g2 = Exp(neg)
                   g3 = Exp(scale)
                   g4 = Exp(f:1)
                   neg = Neg(f:1)
                   row_gamma = Reshape(gamma, w)
                   scale = Mul(row_gamma, f:2))") == "");
}
TEST_CASE_FIXTURE(NormFixture, "almost layer normalization") {
  const std::string end = "\nsum = AddN(off, val)\nf = AddV2(sum, row_beta)";
  SUBCASE("over another axis") {
    Add("q2 = Neg(q)" + end);
    const Constant axis = Constant::Of(Shape{1}, std::vector<int32_t>{1});
    axis.Write((*this)["axis"]);
  }
  SUBCASE("of unknown rank") {
    Add("q2 = Neg(q)" + end);
    context().properties().Forget("x");
  }
  SUBCASE("without keep_dims") {
    Add("q2 = Neg(q)" + end);
    (*this)["mean"].SetAttr("keep_dims", false);
  }
  SUBCASE("a gamma for every column") {
    Add("q2 = Neg(q)" + end);
    State("gamma", {7});
    State("row_gamma", {1, 7, 1});
  }
  SUBCASE("the variance about another mean") {
    Add("q2 = Neg(q)" + end);
    CHECK((*this)["sq"].SetInput(0, (*this)["y"]).ok());
  }
  SUBCASE("the offset of another scale") {
    Add("other = Mul(row_gamma, y)" + end);
    CHECK((*this)["off"].SetInput(1, (*this)["other"]).ok());
  }
  SUBCASE("an inner value is used elsewhere") { Add("g = Exp(val)" + end); }
  CHECK(Run(rules) == "0");
}

TEST_CASE_FIXTURE(Fixture, "layer normalization of Keras 2") {
  const Rules rules(FuseLayerNormRules());
  State("x", {2, 7, 4});
  for (const char* vector : {"gamma", "beta"}) State(vector, {4});
  State("flat", {1, 14, 4, 1});
  State("shaped", {2, 7, 4});
  Add(R"(to: int32[4] = [1, 14, 4, 1]
         back: int32[3] = [2, 7, 4])");
  Add("ones: float[14] = 1\nzeros: float[14] = 0");
  Add("flat = Reshape(x, to)\n"
      "norm = FusedBatchNormV3(flat, ones, zeros, b, b)\n"
      "shaped = Reshape(norm, back)\nval = Mul(shaped, gamma)\n"
      "f = AddV2(beta, val)");
  const Node norm = (*this)["norm"];
  norm.SetAttr("is_training", true);
  norm.SetAttr("data_format", "NCHW");
  norm.SetAttr("epsilon", 0.25f);
  SUBCASE("fused") {
    CHECK(Run(rules) == "1");
    CHECK(Compare("f = TfplugLayerNorm(x, gamma, beta) {epsilon=0.25}") == "");
    return;
  }
  SUBCASE("with a scale") {
    Constant::Of(Shape{14}, Floats(14, 2)).Write((*this)["ones"]);
  }
  SUBCASE("in inference") { norm.SetAttr("is_training", false); }
  SUBCASE("over two dimensions") { State("flat", {1, 2, 28, 1}); }
  SUBCASE("with statistics that are used") { Add("g = Neg(norm:1)"); }
  CHECK(Run(rules) == "0");
}

// ---- Attention --------------------------------------------------------------

struct AttentionFixture : Fixture {
  AttentionFixture() {
    for (const char* name : {"q", "k", "v"}) State(name, {-1, 7, 2, 8});
    Add("scale = 0.25\nlow = -1000");
  }
  void SetEquation(const std::string& node, const std::string& equation) {
    (*this)[node].SetAttr("equation", equation);
  }
  const Rules rules = Rules(FuseAttentionRules());
};

TEST_CASE_FIXTURE(AttentionFixture, "attention by Einsum") {
  std::string operands = "q, k, v", scale = "0.25";
  const auto finish = [&](const std::string& scores) {
    Add("soft = Softmax(" + scores + ")\nf = Einsum(soft, v)");
    SetEquation("f", "BNTS,BSNH->BTNH");
  };
  SUBCASE("plain") {
    scale = "1.0";
    Add(R"(s = Einsum(q, k) {equation="BTNH,BSNH->BNTS"})");
    finish("s");
  }
  SUBCASE("scaled scores and a mask") {
    State("mask", {-1, 1, 7, 7});
    Add("s = Einsum(q, k)\nm = Mul(scale, s)\nw1 = SelectV2(mask, m, low)");
    SetEquation("s", "BTNH,BSNH->BNTS");
    finish("w1");
    operands += ", mask";
  }
  SUBCASE("a scaled query, a bias, and the key first") {
    State("b", {1, 1, 7, 7});
    Add("m = Mul(q, scale)\ns = Einsum(k, m)\nw1 = AddV2(b, s)");
    SetEquation("s", "aecd,abcd->acbe");
    finish("w1");
    operands += ", b";
  }
  CHECK(Run(rules) == "1");
  const bool has_mask = operands.find("mask") != std::string::npos;
  CHECK(Compare("f = TfplugAttention(" + operands + R"() {
            layout="BTNH", num_probabilities=0, scale=)" +
                scale +
                (has_mask ? ", num_masks=1, masked_score=-1000.0}"
                          : ", num_masks=0, masked_score=0.0}")) == "");
}
TEST_CASE_FIXTURE(AttentionFixture, "attention whose heads come first") {
  Add("two = 2");
  std::string scale = "1.0";
  SUBCASE("by Einsum") {
    Add("s = Einsum(q, k)\nsoft = Softmax(s)\nf = Einsum(soft, v)");
    SetEquation("s", "BNTH,BNSH->BNTS");
    SetEquation("f", "BNTS,BNSH->BNTH");
  }
  SUBCASE("by BatchMatMul") {
    scale = "0.5";
    Add(R"(s = BatchMatMulV2(q, k) {adj_x=false, adj_y=true}
           m = RealDiv(s, two)
           soft = Softmax(m)
           f = BatchMatMulV2(soft, v) {adj_x=false, adj_y=false})");
  }
  CHECK(Run(rules) == "1");
  CHECK(Compare(R"(f = TfplugAttention(q, k, v) {layout="BNTH", scale=)" +
                scale + "}") == "");
}
TEST_CASE_FIXTURE(AttentionFixture, "attention of transposed scores") {
  Add(R"(p: int32[4] = [0, 2, 3, 1]
         p2: int32[4] = [0, 1, 3, 2])");
  Add("m = Mul(scale, q)\nt = Transpose(m, p)\ns = BatchMatMulV2(k, t)\n"
      "u = Transpose(s, p2)\nsoft = Softmax(u)\nf = BatchMatMulV2(soft, v)");
  for (const char* name : {"s", "f"}) {
    (*this)[name].SetAttr("adj_x", false);
    (*this)[name].SetAttr("adj_y", false);
  }
  SUBCASE("fused") {
    CHECK(Run(rules) == "1");
    CHECK(Compare(R"(
        f = TfplugAttention(f/Transpose, k, v) {scale=0.25}
        f/Transpose = Transpose(q, f/Const))") == "");
  }
  SUBCASE("another permutation") {
    Constant::Of(Shape{4}, std::vector<int32_t>{0, 1, 3, 2})
        .Write((*this)["p"]);
    CHECK(Run(rules) == "0");
  }
}
TEST_CASE_FIXTURE(AttentionFixture, "the probabilities that a gradient uses") {
  Add("s = Einsum(q, k)\nm = Mul(scale, s)\nsoft = Softmax(m)\n"
      "f = Einsum(soft, v)\ng = Mul(soft, y)");
  SetEquation("s", "BTNH,BSNH->BNTS");
  SetEquation("f", "BNTS,BSNH->BTNH");
  CHECK(Run(rules) == "1");
  CHECK(Compare(R"(f = TfplugAttention(q, k, v) {num_probabilities=1}
                   g = Mul(f:1, y))") == "");
}
TEST_CASE_FIXTURE(AttentionFixture, "almost attention") {
  std::string equation = "BTNH,BSNH->BNTS", scores = "s = Einsum(q, k)",
              last = "f = Einsum(soft, v)", value = "BNTS,BSNH->BTNH";
  SUBCASE("another contraction") { equation = "BTNH,BSNH->BTNS"; }
  SUBCASE("another result") { value = "BNTS,BSNH->BNTH"; }
  SUBCASE("of unknown rank") { context().properties().Forget("k"); }
  SUBCASE("the scores are used elsewhere") { last += "\ng = Neg(s)"; }
  SUBCASE("a factor that is not a number") {
    Add("factors: float[7] = 2");
    scores = "s0 = Einsum(q, k)\ns = Mul(s0, factors)";
  }
  Add(scores + "\nsoft = Softmax(s)\n" + last);
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
