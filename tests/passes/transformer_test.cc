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
    for (const char* op : {"TfplugGelu", "TfplugGeluTanh", "TfplugSilu",
                           "Reciprocal", "Square", "ZerosLike"}) {
      DefineOp(op, {"T: type"}, {"x: T"});
    }
    for (const char* op : {"Maximum", "Sub"})
      DefineOp(op, {"T: type"}, {"x: T", "y: T"});
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
  ActivationFixture() {
    Add(R"(half = 0.5
           one = 1
           root = 0.70710678
           two = 1.41421356
           minus = -0.70710678
           c = 0.044715
           d = 0.7978846
           three = 3)");
  }
  const Rules rules = Rules(FuseActivationsRules());
};

TEST_CASE_FIXTURE(ActivationFixture, "exact GELU") {
  SUBCASE("Keras 2") {
    Add("s = Mul(root, x)\ne = Erf(s)\na = AddV2(e, one)\nh = Mul(a, half)\n"
        "f = Mul(x, h)");
  }
  SUBCASE("Keras 3") {
    Add("n = Neg(x)\ns = Mul(root, n)\ne = Erfc(s)\nh = Mul(e, half)\n"
        "f = Mul(x, h)");
  }
  SUBCASE("as traced") {
    Add("h = Mul(half, x)\ns = RealDiv(x, two)\ne = Erf(s)\n"
        "a = AddV2(one, e)\nf = Mul(h, a)");
  }
  SUBCASE("half of the product") {
    Add("s = Mul(x, minus)\ne = Erfc(s)\np = Mul(x, e)\nf = Mul(p, half)");
  }
  CHECK(Run(rules) == "1");
  CHECK(Compare("f = TfplugGelu(x) {T=float}") == "");
}
TEST_CASE_FIXTURE(ActivationFixture, "GELU with tanh") {
  SUBCASE("by Pow") { Add("cube = Pow(x, three)"); }
  SUBCASE("by Square") { Add("s = Square(x)\ncube = Mul(s, x)"); }
  SUBCASE("by Mul") { Add("s = Mul(x, x)\ncube = Mul(x, s)"); }
  Add("g = Mul(c, cube)\ni = AddV2(x, g)\nj = Mul(i, d)\nt = Tanh(j)\n"
      "a = AddV2(t, one)\nh = Mul(a, half)\nf = Mul(x, h)");
  CHECK(Run(rules) == "1");
  CHECK(Compare("f = TfplugGeluTanh(x)") == "");
}
TEST_CASE_FIXTURE(ActivationFixture, "almost GELU") {
  std::string s = "Mul(root, x)", e = "Erf(s)", a = "AddV2(e, one)",
              h = "Mul(a, half)", f = "Mul(x, h)";
  SUBCASE("another factor") { s = "Mul(half, x)"; }
  SUBCASE("another summand") { a = "AddV2(e, half)"; }
  SUBCASE("not halved") { h = "Mul(a, one)"; }
  SUBCASE("of two values") { f = "Mul(y, h)"; }
  SUBCASE("an intermediate value is used elsewhere") { f += "\ng = Exp(s)"; }
  SUBCASE("a power of 2") {
    s = "Pow(x, one)\ng = Mul(c, s)\ni = AddV2(x, g)\nj = Mul(i, d)";
    e = "Tanh(j)";
  }
  SUBCASE("a type without a kernel") {
    (*this)["x"].SetAttr("T", DataType::kDouble);
  }
  Add("s = " + s + "\ne = " + e + "\na = " + a + "\nh = " + h + "\nf = " + f);
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
    Add(R"(axis: int32[1] = [-1]
           eps = 0.001
           row_gamma = Reshape(gamma, w)
           row_beta = Reshape(beta, w)
           mean = Mean(x, axis) {keep_dims=true}
           neg = Neg(mean)
           sq = SquaredDifference(mean, x)
           var = Mean(sq, axis) {keep_dims=true}
           add = AddV2(eps, var)
           rstd = Rsqrt(add)
           scale = Mul(row_gamma, rstd)
           off = Mul(neg, scale)
           val = Mul(scale, x))");
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
// The variance of tf.nn.moments since TensorFlow 2.22.
struct ClippedNormFixture : NormFixture {
  ClippedNormFixture() {
    Add(R"(centered = Sub(x, mean)
           square = Square(centered)
           squares = Mean(square, axis) {keep_dims=true}
           centered_axis: int32[1] = [-1]
           rest = Mean(centered, centered_axis) {keep_dims=true}
           rest_square = Square(rest)
           raw = Sub(squares, rest_square)
           zero = 0.0
           clipped = Maximum(raw, zero))");
    CHECK((*this)["add"].SetInput(1, (*this)["clipped"]).ok());
    for (const char* const name : {"var", "sq"})
      CHECK(graph.RemoveNode((*this)[name]).ok());
  }
};

TEST_CASE_FIXTURE(ClippedNormFixture,
                  "layer normalization of TensorFlow 2.22") {
  SUBCASE("with the formula of Keras 3.15") {
    Add("sum = AddN(off, val)\nf = AddV2(sum, row_beta)");
  }
  // It subtracts the mean before it scales.
  SUBCASE("with the formula of Keras 3.16") {
    for (const char* const name : {"val", "off", "neg"})
      CHECK(graph.RemoveNode((*this)[name]).ok());
    SUBCASE("after TensorFlow's rewriting") {
      Add("scaled = Mul(centered, scale)\nf = AddV2(scaled, row_beta)");
    }
    SUBCASE("as traced") {
      Add("stopped = StopGradient(mean)\nother = Sub(x, mean)\n"
          "scaled = Mul(other, scale)\nf = AddV2(scaled, row_beta)");
      CHECK((*this)["centered"].SetInput(1, (*this)["stopped"]).ok());
    }
    SUBCASE("with what a gradient uses") {
      Add("scaled = Mul(centered, scale)\nf = AddV2(scaled, row_beta)\n"
          "g1 = GreaterEqual(raw, zero)\ng2 = Exp(rest)\n"
          "g3 = Exp(centered)\ng4 = Exp(scale)");
      CHECK(Run(rules) == "1");
      CHECK(Compare(R"(f = TfplugLayerNorm(x, gamma, beta)
                       g1 = GreaterEqual(f/Maximum, zero)
                       g2 = Exp(f/ZerosLike)
                       g3 = Exp(centered)
                       g4 = Exp(scale)
                       centered = Sub(x, f:1)
                       f/ZerosLike = ZerosLike(f:1)
                       f/Square = Square(f:2)
                       f/Reciprocal = Reciprocal(f/Square)
                       f/Sub = Sub(f/Reciprocal, eps)
                       f/Maximum = Maximum(f/Sub, zero)
                       row_gamma = Reshape(gamma, w)
                       scale = Mul(row_gamma, f:2))") == "");
      return;
    }
  }
  CHECK(Run(rules) == "1");
  CHECK(Compare("f = TfplugLayerNorm(x, gamma, beta) {epsilon=0.001}") == "");
}
TEST_CASE_FIXTURE(ClippedNormFixture,
                  "almost layer normalization of TensorFlow 2.22") {
  Add("sum = AddN(off, val)\nf = AddV2(sum, row_beta)");
  SUBCASE("another minimum") {
    Constant::Of(Shape{}, std::vector<float>{0.5F}).Write((*this)["zero"]);
  }
  SUBCASE("the mean over another axis") {
    const Constant axis = Constant::Of(Shape{1}, std::vector<int32_t>{1});
    axis.Write((*this)["centered_axis"]);
  }
  SUBCASE("without keep_dims") { (*this)["rest"].SetAttr("keep_dims", false); }
  SUBCASE("the mean of other values") {
    CHECK((*this)["rest"].SetInput(0, (*this)["x"]).ok());
  }
  SUBCASE("the variance is used elsewhere") { Add("g = Exp(clipped)"); }
  CHECK(Run(rules) == "0");
}
TEST_CASE_FIXTURE(NormFixture, "almost layer normalization") {
  Add("sum = AddN(off, val)\nf = AddV2(sum, row_beta)");
  SUBCASE("over another axis") {
    const Constant axis = Constant::Of(Shape{1}, std::vector<int32_t>{1});
    axis.Write((*this)["axis"]);
  }
  SUBCASE("of unknown rank") { context().properties().Forget("x"); }
  SUBCASE("without keep_dims") { (*this)["mean"].SetAttr("keep_dims", false); }
  SUBCASE("a gamma for every column") {
    State("gamma", {7});
    State("row_gamma", {1, 7, 1});
  }
  SUBCASE("the variance about another mean") {
    CHECK((*this)["sq"].SetInput(0, (*this)["y"]).ok());
  }
  SUBCASE("the offset of another scale") {
    CHECK((*this)["off"].SetInput(1, Add("other = Mul(row_gamma, y)")).ok());
  }
  SUBCASE("an inner value is used elsewhere") { Add("g = Exp(val)"); }
  CHECK(Run(rules) == "0");
}

TEST_CASE_FIXTURE(Fixture, "layer normalization of Keras 2") {
  const Rules rules(FuseLayerNormRules());
  State("x", {2, 7, 4});
  for (const char* vector : {"gamma", "beta"}) State(vector, {4});
  Add(R"(to: int32[4] = [1, 14, 4, 1]
         back: int32[3] = [2, 7, 4]
         ones: float[14] = 1
         zeros: float[14] = 0
         flat: float[1,14,4,1] = Reshape(x, to)
         norm = FusedBatchNormV3(flat, ones, zeros, b, b) {
             is_training=true, data_format="NCHW", epsilon=0.25}
         shaped: float[2,7,4] = Reshape(norm, back)
         val = Mul(shaped, gamma)
         f = AddV2(beta, val))");
  SUBCASE("fused") {
    CHECK(Run(rules) == "1");
    CHECK(Compare("f = TfplugLayerNorm(x, gamma, beta) {epsilon=0.25}") == "");
    return;
  }
  SUBCASE("with a scale") {
    Constant::Of(Shape{14}, Floats(14, 2)).Write((*this)["ones"]);
  }
  SUBCASE("in inference") { (*this)["norm"].SetAttr("is_training", false); }
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
  const Rules rules = Rules(FuseAttentionRules());
};

TEST_CASE_FIXTURE(AttentionFixture, "attention by Einsum") {
  std::string operands = "q, k, v", scale = "0.25";
  SUBCASE("plain") {
    scale = "1.0";
    Add(R"(scores = Einsum(q, k) {equation="BTNH,BSNH->BNTS"})");
  }
  SUBCASE("scaled scores and a mask") {
    State("mask", {-1, 1, 7, 7});
    Add(R"(s = Einsum(q, k) {equation="BTNH,BSNH->BNTS"}
           m = Mul(scale, s)
           scores = SelectV2(mask, m, low))");
    operands += ", mask";
  }
  SUBCASE("a scaled query, a bias, and the key first") {
    State("b", {1, 1, 7, 7});
    Add(R"(m = Mul(q, scale)
           s = Einsum(k, m) {equation="aecd,abcd->acbe"}
           scores = AddV2(b, s))");
    operands += ", b";
  }
  Add(R"(soft = Softmax(scores)
         f = Einsum(soft, v) {equation="BNTS,BSNH->BTNH"})");
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
    Add(R"(s = Einsum(q, k) {equation="BNTH,BNSH->BNTS"}
           soft = Softmax(s)
           f = Einsum(soft, v) {equation="BNTS,BNSH->BNTH"})");
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
         p2: int32[4] = [0, 1, 3, 2]
         m = Mul(scale, q)
         t = Transpose(m, p)
         s = BatchMatMulV2(k, t) {adj_x=false, adj_y=false}
         u = Transpose(s, p2)
         soft = Softmax(u)
         f = BatchMatMulV2(soft, v) {adj_x=false, adj_y=false})");
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
  Add(R"(s = Einsum(q, k) {equation="BTNH,BSNH->BNTS"}
         m = Mul(scale, s)
         soft = Softmax(m)
         f = Einsum(soft, v) {equation="BNTS,BSNH->BTNH"}
         g = Mul(soft, y))");
  CHECK(Run(rules) == "1");
  CHECK(Compare(R"(f = TfplugAttention(q, k, v) {num_probabilities=1}
                   g = Mul(f:1, y))") == "");
}
TEST_CASE_FIXTURE(AttentionFixture, "almost attention") {
  std::string equation = "BTNH,BSNH->BNTS", value = "BNTS,BSNH->BTNH",
              scores = "s", more;
  SUBCASE("another contraction") { equation = "BTNH,BSNH->BTNS"; }
  SUBCASE("another result") { value = "BNTS,BSNH->BNTH"; }
  SUBCASE("of unknown rank") { context().properties().Forget("k"); }
  SUBCASE("the scores are used elsewhere") { more = "\ng = Neg(s)"; }
  SUBCASE("a factor that is not a number") {
    scores = "m";
    more = "\nfactors: float[7] = 2\nm = Mul(s, factors)";
  }
  Add("s = Einsum(q, k) {equation=\"" + equation + "\"}" + more);
  Add("soft = Softmax(" + scores + ")\nf = Einsum(soft, v) {equation=\"" +
      value + "\"}");
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
