// SPDX-License-Identifier: Apache-2.0
#include <tfplug/ops/array.h>
#include <tfplug/ops/math.h>
#include <tfplug/ops/nn.h>
#include <tfplug/patterns/rule.h>

#include <string>
#include <utility>
#include <vector>

#include "patterns/rules_fixture.h"

// Tests rules that replace several outputs.
namespace tfplug::results_test {
namespace {

using Fixture = NewOpsFixture;

// ---- Inner nodes whose outputs are used elsewhere ---------------------------

// Mul(Square(x), Rsqrt(Square(x))), where both may be used elsewhere.
struct NormFixture : Fixture {
  NormFixture() {
    Add(R"(square = Square(x)
           rsqrt = Rsqrt(square)
           mul = Mul(square, rsqrt))");
  }
  static Rules Fuse(const Pattern& x) {
    const auto square = Match<ops::Square>(x);
    const auto rsqrt = Match<ops::Rsqrt>(square);
    const auto norm = New("MyNorm", x);
    return MakeRules(Rule("norm", Match<ops::Mul>(square, rsqrt))
                         .ReplaceBy(norm)
                         .AlsoReplace(square, norm[1])
                         .AlsoReplace(rsqrt, norm[2]));
  }
  const Rules rules = Fuse(x);
};

TEST_CASE_FIXTURE(NormFixture, "results that nothing else uses") {
  CHECK(Run(rules) == "1");
  CHECK(Compare("mul = MyNorm(x)") == "");
}
TEST_CASE_FIXTURE(NormFixture, "results that other nodes use") {
  Add(R"(grad = Neg(rsqrt)
         grads = AddV2(square, square, ^mul))");
  CHECK(Run(rules) == "1");
  CHECK(Compare(R"(grad = Neg(mul:2)
                   grads = AddV2(mul:1, mul:1, ^mul)
                   mul = MyNorm(x))") == "");
}
TEST_CASE_FIXTURE(Fixture, "two matches in one graph are independent") {
  DefineOp("Scale", {"T: type", "epsilon: float", "mode: string"},
           {"x: T", "factor: T"}, {"y: T", "z: T"});
  const auto square = Match<ops::Square>(x);
  const auto factor = NewConst([x = x](const Matched& m) {
    const float value = m.node(x).GetAttr<float>("value").value_or(1);
    return Constant::Of(Shape{}, std::vector<float>{value});
  });
  const auto scale = New("Scale", x, factor)
                         .Copy(square, "epsilon", "epsilon")
                         .Set("mode", "fast");
  const Rules rules = MakeRules(Rule("scale", Match<ops::Neg>(square))
                                    .ReplaceBy(scale)
                                    .AlsoReplace(square, scale[1]));
  (*this)["x"].SetAttr("value", 2.0f);
  (*this)["y"].SetAttr("value", 3.0f);
  Add("before = Placeholder()");
  // The first match has a control input, an attribute and another use of the
  // inner node; the second has none of them.
  Add(R"(square1 = Square(x, ^before) {epsilon=0.5}
         neg1 = Neg(square1)
         user = Rsqrt(square1)
         square2 = Square(y)
         neg2 = Neg(square2))");
  CHECK(Run(rules) == "2");
  CHECK(Compare(R"(neg1 = Scale(x, neg1/Const, ^before) {epsilon=0.5}
                   neg2 = Scale(y, neg2/Const) {epsilon=1.0}
                   user = Rsqrt(neg1:1))") == "");
  for (const auto& [name, value] : {std::make_pair("neg1/Const", 2.0f),
                                    std::make_pair("neg2/Const", 3.0f)}) {
    CHECK(Constant::Read((*this)[name])->GetElements<float>().value() ==
          std::vector<float>{value});
  }
}
TEST_CASE_FIXTURE(NormFixture, "a result whose name must remain") {
  SUBCASE("because it is fetched") {
    Fetch("rsqrt");
    Add("user = Neg(rsqrt)");
    CHECK(Run(rules) == "1");
    CHECK(Compare(R"(mul = MyNorm(x)
                     rsqrt = Identity(mul:2) {T=float}
                     user = Neg(mul:2))") == "");
  }
  SUBCASE("because of a control edge") {
    Add("user = Neg(x, ^square)");
    CHECK(Run(rules) == "1");
    CHECK(Compare(R"(mul = MyNorm(x)
                     square = Identity(mul:1)
                     user = Neg(x, ^square))") == "");
  }
}
TEST_CASE_FIXTURE(NormFixture, "a result that may be fed") {
  Preserve("rsqrt");
  Add("user = Neg(rsqrt)");
  CHECK(Run(rules) == "0");
}
TEST_CASE_FIXTURE(NormFixture, "a result on another device") {
  Add("user = Neg(rsqrt)");
  (*this)["rsqrt"].SetDevice("/device:CPU:0");
  CHECK(Run(rules) == "0");
}
TEST_CASE_FIXTURE(Fixture, "an operand that depends on a result") {
  const Pattern y = Any();
  const auto square = Match<ops::Square>(x);
  const auto norm = New("MyNorm", y);
  const Rules rules = MakeRules(Rule("norm", Match<ops::Mul>(square, y))
                                    .ReplaceBy(norm)
                                    .AlsoReplace(square, norm[1]));
  Add(R"(square = Square(x)
         neg = Neg(square)
         relu = Relu(neg))");
  SUBCASE("by data") {
    Add("mul = Mul(square, relu)");
    CHECK(Explain(rules, "mul")
              .find("norm: an operand of the match depends on one of its "
                    "results, by "
                    "way of 'neg' (Neg)") == 0);
    CHECK(Run(rules) == "0");
  }
  SUBCASE("by a control edge") {
    Add(R"(z = Placeholder(^relu)
           mul = Mul(square, z))");
    CHECK(Run(rules) == "0");
  }
  SUBCASE("not at all") {
    Add("mul = Mul(square, y)");
    CHECK(Run(rules) == "1");
    CHECK(Compare(R"(mul = MyNorm(y)
                     neg = Neg(mul:1)
                     relu = Relu(neg))") == "");
  }
}

// ---- Several outputs of the root -------------------------------------------

TEST_CASE_FIXTURE(Fixture, "several outputs of the root") {
  const auto split = Match("MySplit", x);
  const auto norm = New("MyNorm", x);
  const Rules rules = MakeRules(
      Rule("swap", split).ReplaceBy(norm[1]).AlsoReplace(split[1], norm[0]));
  Add(R"(split = MySplit(x) {num=3}
         first = Neg(split)
         second = Neg(split:1))");
  SUBCASE("all used ones are replaced") {
    CHECK(Run(rules) == "1");
    CHECK(Compare(R"(first = Neg(split:1)
                     second = Neg(split)
                     split = MyNorm(x))") == "");
  }
  SUBCASE("another one is used") {
    Add("third = Neg(split:2)");
    CHECK(Explain(rules, "split") ==
          "swap: output 2 of 'split' (MySplit) may be used, but the "
          "replacement does not provide it\n");
    CHECK(Run(rules) == "0");
  }
}

// ---- Nodes that share an operand --------------------------------------------

// MatMul(x, v) and MatMul(x, w) -> Split(MatMul(x, Concat(v, w)))
struct SiblingsFixture : Fixture {
  SiblingsFixture() {
    Add(R"(v, w, u = Placeholder()
           xv = MatMul(x, v)
           xw = MatMul(x, w)
           user_v = Neg(xv)
           user_w = Neg(xw))");
  }
  static Rules Join(const Pattern& x) {
    const Pattern v = Any("v"), w = Any("w");
    const auto axis = NewConst(Constant::Of(Shape{}, std::vector<int>{1}));
    const auto both = New<ops::ConcatV2>(v, w, axis);
    const auto split = New("MySplit", New<ops::MatMul>(x, both)).Set("num", 2);
    return MakeRules(Rule("join", Match<ops::MatMul>(x, v))
                         .ReplaceBy(split)
                         .AlsoReplace(Match<ops::MatMul>(x, w), split[1]));
  }
  const Rules rules = Join(x);
};

TEST_CASE_FIXTURE(SiblingsFixture, "two nodes with a common operand") {
  CHECK(Run(rules) == "1");
  CHECK(Compare(R"(user_v = Neg(xv)
                   user_w = Neg(xv:1)
                   xv = MySplit(xv/MatMul) {num=2}
                   xv/ConcatV2 = ConcatV2(v, w, xv/Const)
                   xv/MatMul = MatMul(x, xv/ConcatV2))") == "");
}
TEST_CASE_FIXTURE(SiblingsFixture, "no such node") {
  CHECK((*this)["xw"].SetInput(0, (*this)["y"]).ok());
  CHECK(Explain(rules, "xv") ==
        "join: no user of output 0 of 'x' (Placeholder) is MatMul\n");
  CHECK(Run(rules) == "0");
}
TEST_CASE_FIXTURE(SiblingsFixture, "the first candidate does not fit") {
  // The operand of the first one depends on the root.
  CHECK((*this)["xw"].SetInput(1, (*this)["user_v"]).ok());
  Add("xu = MatMul(x, u)");
  SUBCASE("because it is on another device") {
    (*this)["xw"].SetDevice("/device:CPU:0");
    CHECK(Run(rules) == "1");
    CHECK((*this)["xv/ConcatV2"].input(1).node.name() == "u");
  }
  const char* const joined_with_xu =
      "user_v = Neg(xv)\n"
      "user_w = Neg(xw)\n"
      "xv = MySplit(xv/MatMul)\n"
      "xv/ConcatV2 = ConcatV2(v, u, xv/Const)\n"
      "xv/MatMul = MatMul(x, xv/ConcatV2)\n";
  SUBCASE("because the graph would have a cycle") {
    CHECK(Run(rules) == "1");
    CHECK(Compare(joined_with_xu + std::string("xw = MatMul(x, user_v)")) ==
          "");
  }
  SUBCASE("because a condition is false") {
    CHECK((*this)["xw"].SetInput(1, (*this)["w"]).ok());
    const Pattern v = Any(), w = Any();
    const auto split = New("MySplit", New<ops::MatMul>(x, v)).Set("num", 2);
    const auto make = [&](const char* name) {
      return MakeRules(Rule("join", Match<ops::MatMul>(x, v))
                           .OnlyIf("the name fits",
                                   [w, name](const Matched& m) {
                                     return m.node(w).name() == name;
                                   })
                           .ReplaceBy(split)
                           .AlsoReplace(Match<ops::MatMul>(x, w), split[1]));
    };
    CHECK(Explain(make("u"), "xv") == "join: matches\n");
    CHECK(Explain(make("y"), "xv") ==
          "join: condition not met: the name fits\n");
    CHECK(Run(make("y")) == "0");
    CHECK(Run(make("u")) == "1");
    CHECK((*this)["user_w"].input(0).node.name() == "xw");
  }
}
TEST_CASE_FIXTURE(SiblingsFixture,
                  "only the root's new node needs an operand") {
  const Pattern v = Any(), w = Any();
  const Rules apart =
      MakeRules(Rule("apart", Match<ops::MatMul>(x, v))
                    .ReplaceBy(New("MyNorm", w))
                    .AlsoReplace(Match<ops::MatMul>(x, w), New("MyNorm", x)));
  // The root's new node would depend on itself.
  CHECK((*this)["xw"].SetInput(1, (*this)["user_v"]).ok());
  CHECK(
      Explain(apart, "xv") ==
      "apart: an operand of the match depends on one of its results, by way of "
      "'user_v' (Neg)\n");
  CHECK(Explain(apart, "xw") == "apart: matches\n");
}
TEST_CASE_FIXTURE(SiblingsFixture,
                  "only a result's new node needs an operand") {
  const Pattern v = Any(), w = Any();
  const Rules apart =
      MakeRules(Rule("apart", Match<ops::MatMul>(x, v))
                    .ReplaceBy(New("MyNorm", x))
                    .AlsoReplace(Match<ops::MatMul>(x, w), New("MyNorm", v)));
  // The result's new node would depend on itself.
  CHECK((*this)["xv"].SetInput(1, (*this)["user_w"]).ok());
  CHECK(Explain(apart, "xv") ==
        "apart: an operand of the match depends on one of its results, by way "
        "of 'user_w' (Neg)\n");
}
TEST_CASE_FIXTURE(SiblingsFixture, "a result whose inputs may be swapped") {
  const Pattern v = Any(), w = Any();
  const auto split = New("MySplit", New<ops::MatMul>(v, w)).Set("num", 2);
  const Rules rules = MakeRules(
      Rule("sum", Match<ops::MatMul>(x, v))
          .ReplaceBy(split)
          .AlsoReplace(Match<ops::AddV2>(x, w).Commutative(), split[1]));
  SUBCASE("in the order of the pattern") { Add("sum = AddV2(x, u)"); }
  SUBCASE("in the other order") { Add("sum = AddV2(u, x)"); }
  Add("user = Neg(sum)");
  CHECK((*this)["user_w"].SetInput(0, (*this)["x"]).ok());
  CHECK(graph.RemoveNode((*this)["xw"]).ok());
  CHECK(Run(rules) == "1");
  CHECK(Compare(R"(user = Neg(xv:1)
                   user_v = Neg(xv)
                   user_w = Neg(x)
                   xv = MySplit(xv/MatMul)
                   xv/MatMul = MatMul(v, u))") == "");
}
TEST_CASE_FIXTURE(Fixture, "a result that uses the root") {
  const auto neg = Match<ops::Neg>(x);
  const auto norm = New("MyNorm", x);
  const Rules rules =
      MakeRules(Rule("norm", neg)
                    .ReplaceBy(norm)
                    .AlsoReplace(Match<ops::Square>(neg), norm[1]));
  Add(R"(neg = Neg(x)
         square = Square(neg)
         user = Rsqrt(square))");
  CHECK(Run(rules) == "1");
  CHECK(Compare(R"(neg = MyNorm(x)
                   user = Rsqrt(neg:1))") == "");
}
TEST_CASE_FIXTURE(SiblingsFixture, "control inputs of a result") {
  SUBCASE("from the root") {
    CHECK((*this)["xw"].AddControl((*this)["xv"]).ok());
    CHECK(Run(rules) == "1");
    CHECK((*this)["xv"].num_controls() == 0);
  }
  SUBCASE("from a node that depends on the root") {
    CHECK((*this)["xw"].AddControl((*this)["user_v"]).ok());
    CHECK(Explain(rules, "xv") ==
          "join: an operand of the match depends on one of its results, by way "
          "of 'user_v' (Neg)\n");
    CHECK(Run(rules) == "0");
  }
}
TEST_CASE_FIXTURE(SiblingsFixture, "many candidates that do not fit") {
  int num_calls = 0;
  const Pattern v = Any(), w = Any();
  const auto split = New("MySplit", New<ops::MatMul>(x, v)).Set("num", 2);
  const Rules none =
      MakeRules(Rule("join", Match<ops::Square>(x))
                    .OnlyIf("never",
                            [&num_calls](const Matched&) {
                              ++num_calls;
                              return false;
                            })
                    .ReplaceBy(split)
                    .AlsoReplace(Match<ops::MatMul>(x, w), split[1]));
  Add("square = Square(x)");
  for (int i = 0; i < 100; ++i)
    Add("m" + std::to_string(i) + " = MatMul(x, w)");
  CHECK(Run(none) == "0");
  CHECK(num_calls == 64);
}
TEST_CASE_FIXTURE(SiblingsFixture, "a node further away from the operand") {
  DefineOp("BiasAdd", {"T: type"}, {"value: T", "bias: T"});
  const Pattern v = Any(), w = Any(), b = Any();
  const auto other =
      Match<ops::Relu>(Match<ops::BiasAdd>(Match<ops::MatMul>(x, w), b));
  const auto split = New("MySplit", x).Set("num", 2);
  const Rules join = MakeRules(Rule("join", Match<ops::MatMul>(x, v))
                                   .ReplaceBy(split)
                                   .AlsoReplace(other, split[1]));
  Add(R"(bias = BiasAdd(xw, u)
         relu = Relu(bias)
         user = Neg(relu))");
  CHECK((*this)["user_w"].SetInput(0, (*this)["x"]).ok());
  CHECK(Run(join) == "1");
  CHECK(Compare(R"(user = Neg(xv:1)
                   user_v = Neg(xv)
                   user_w = Neg(x)
                   xv = MySplit(x))") == "");
}
TEST_CASE_FIXTURE(SiblingsFixture, "a result that is not connected") {
  const Rules wrong = MakeRules(Rule("wrong", Match<ops::MatMul>(x, Any()))
                                    .ReplaceBy(x)
                                    .AlsoReplace(Match<ops::Neg>(Any()), x));
  CHECK(Run(wrong) ==
        "rule 'wrong': a node in AlsoReplace() must be a part of the pattern, "
        "or have an input that is");
  const Rules value = MakeRules(Rule("value", Match<ops::MatMul>(x, Any()))
                                    .ReplaceBy(x)
                                    .AlsoReplace(Any(), x));
  CHECK(Run(value) == "rule 'value': AlsoReplace() takes an output of a node");
}

}  // namespace
}  // namespace tfplug::results_test
