// SPDX-License-Identifier: Apache-2.0
#include <tfplug/ops/array.h>
#include <tfplug/ops/math.h>
#include <tfplug/ops/nn.h>
#include <tfplug/patterns/choices.h>
#include <tfplug/patterns/constants.h>
#include <tfplug/patterns/rule.h>

#include <string>
#include <utility>
#include <vector>

#include "patterns/rules_fixture.h"

// Tests new nodes: ops that are given by their names, and attributes that
// follow from the inputs.
namespace tfplug::new_nodes_test {
namespace {

using Fixture = NewOpsFixture;

TEST_CASE_FIXTURE(Fixture, "an op by its name") {
  const auto relu = Match<ops::Relu>(x);
  const auto made = New("MyNorm", x);
  SUBCASE("with attributes by their names") {
    const Rules rules = MakeRules(
        Rule("mine", relu).ReplaceBy(made.Copy(relu, "alpha", "epsilon")));
    Add("relu = Relu(x) {alpha=0.5}");
    (*this)["x"].SetAttr("T", DataType::kHalf);
    CHECK(Run(rules) == "1");
    CHECK(Compare("relu = MyNorm(x) {T=half, epsilon=0.5}") == "");
  }
  SUBCASE("with a value of a function") {
    const Rules rules = MakeRules(
        Rule("mine", relu)
            .ReplaceBy(made.Set("epsilon", [](const Matched&) { return 0.25; })
                           .Set("T", DataType::kDouble)));
    Add("relu = Relu(x)");
    CHECK(Run(rules) == "1");
    CHECK((*this)["relu"].GetAttr<float>("epsilon").value() == 0.25f);
    CHECK((*this)["relu"].GetAttr<DataType>("T").value() == DataType::kDouble);
  }
  SUBCASE("with an attribute that the op lacks") {
    const Rules rules =
        MakeRules(Rule("mine", relu).ReplaceBy(made.Set("epsilom", 1.0f)));
    Add("relu = Relu(x)");
    CHECK(Explain(rules, "relu") ==
          "mine: this TensorFlow's MyNorm has no attribute epsilom\n");
  }
  SUBCASE("without a kernel for the type of its input") {
    const Rules rules =
        MakeRules(Rule("mine", relu).ReplaceBy(made.RequireKernel()));
    Add("relu = Relu(x)");
    CHECK(Explain(rules, "relu") ==
          "mine: no kernel is registered for MyNorm with T=float on SIM\n");
  }
}

TEST_CASE_FIXTURE(Fixture, "a type that does not follow from the inputs") {
  const Rules rules =
      MakeRules(Rule("mine", Match<ops::Relu>(x)).ReplaceBy(New("MyNorm", x)));
  Add(R"(unknown = Unknown()
         relu = Relu(unknown))");
  CHECK(Explain(rules, "relu") ==
        "mine: this TensorFlow's MyNorm requires attribute T, which the rule "
        "does not set and which does not follow from the inputs\n");
  CHECK(Run(rules) == "0");
}
TEST_CASE_FIXTURE(Fixture, "the types of new nodes and constants") {
  const auto axis = NewConst(Constant::Of(Shape{}, std::vector<int64_t>{1}));
  const auto norm = New("MyNorm", x);
  const Rules rules =
      MakeRules(Rule("mine", Match<ops::Relu>(x))
                    .ReplaceBy(New<ops::ConcatV2>(norm[2], norm[2], axis)));
  Add("relu = Relu(x)");
  (*this)["x"].SetAttr("T", DataType::kHalf);
  CHECK(Run(rules) == "1");
  // One new MyNorm with two uses. Its output 2 is a float whatever its input.
  CHECK(Compare(R"(
      relu = ConcatV2(relu/MyNorm:2, relu/MyNorm:2, relu/Const) {
          T=float, Tidx=int64, N=2}
      relu/MyNorm = MyNorm(x) {T=half})") == "");
}
TEST_CASE_FIXTURE(Fixture, "the type of an output after a list") {
  DefineOp("MyParts", {"T: type", "num: int"}, {"x: T"},
           {"parts: num * T", "scale: float"});
  const Rules rules =
      MakeRules(Rule("mine", Match<ops::Relu>(x)).ReplaceBy(New("MyNorm", x)));
  Add(R"(parts = MyParts(x) {T=half, num=2}
         part = Relu(parts:1)
         scale = Relu(parts:2))");
  CHECK(Run(rules) == "2");
  CHECK((*this)["part"].GetAttr<DataType>("T").value() == DataType::kHalf);
  CHECK((*this)["scale"].GetAttr<DataType>("T").value() == DataType::kFloat);
}
TEST_CASE_FIXTURE(Fixture, "a constant with two uses is one node") {
  int num_calls = 0;
  const auto one = NewConst([&num_calls](const Matched&) {
    ++num_calls;
    return Constant::Of(Shape{}, std::vector<float>{1});
  });
  const Rules rules = MakeRules(
      Rule("two", Match<ops::Relu>(x))
          .ReplaceBy(New("AddV2", one, one).Set("T", DataType::kFloat)));
  Add("relu = Relu(x)");
  CHECK(Run(rules) == "1");
  CHECK(Compare("relu = AddV2(relu/Const, relu/Const)") == "");
  CHECK(num_calls == 1);
}
TEST_CASE_FIXTURE(Fixture, "a new constant has the matched one's controls") {
  const auto one = NewConst(Constant::Of(Shape{}, std::vector<float>{1}));
  const Rules rules =
      MakeRules(Rule("one", Match<ops::Mul>(MatchConst(), x))
                    .ReplaceBy(New("Rsqrt", New("MyNorm", one))));
  Add("c: float = 2 (^y)");
  Add("mul = Mul(c, x)");
  CHECK(Run(rules) == "1");
  CHECK((*this)["mul/Const"].num_controls() == 1);
}
TEST_CASE_FIXTURE(Fixture, "a new constant is in the loop of the values") {
  const auto one = NewConst(Constant::Of(Shape{}, std::vector<float>{1}));
  const Rules rules = MakeRules(
      Rule("one", Match<ops::Relu>(x))
          .ReplaceBy(New("AddV2", x, one).Set("T", DataType::kFloat)));
  Add("relu = Relu(x)");
  SUBCASE("in a graph with loops") {
    Add("enter = Enter(y) {frame_name=\"while\"}");
    CHECK(Run(rules) == "1");
    REQUIRE((*this)["relu/Const"].num_controls() == 1);
    CHECK((*(*this)["relu/Const"].controls().begin()).name() == "x");
  }
  SUBCASE("in others it can be folded") {
    CHECK(Run(rules) == "1");
    CHECK((*this)["relu/Const"].num_controls() == 0);
  }
}
TEST_CASE_FIXTURE(Fixture, "the mismatch of the best alternative is reported") {
  const auto either = OneOf(Match<ops::Relu>(Match<ops::Square>(x)),
                            Match<ops::Relu>(Match<ops::Rsqrt>(x)));
  const Rules rules =
      MakeRules(Rule("either", either)
                    .OnlyIf("never", [](const Matched&) { return false; })
                    .ReplaceBy(x));
  Add(R"(square = Square(x)
         relu = Relu(square)
         rsqrt = Rsqrt(x)
         relu2 = Relu(rsqrt))");
  CHECK(Explain(rules, "relu") == "either: condition not met: never\n");
  CHECK(Explain(rules, "relu2") == "either: condition not met: never\n");
}
TEST_CASE_FIXTURE(Fixture, "an attribute of an op by its name is copied") {
  const auto norm = Match("MyNorm", x);
  const Rules rules = MakeRules(
      Rule("copy", norm)
          .ReplaceBy(New("MyNorm", New<ops::Neg>(x).Set("T", DataType::kFloat))
                         .Copy(norm, "epsilon")
                         .Copy(norm, "missing", "T")));
  Add("norm = MyNorm(x) {epsilon=0.5}");
  CHECK(Explain(rules, "norm") == "copy: matches\n");
  const Rules wrong = MakeRules(
      Rule("wrong", norm).ReplaceBy(New("Rsqrt", x).Copy(norm, "epsilon")));
  CHECK(Explain(wrong, "norm") ==
        "wrong: this TensorFlow's Rsqrt has no attribute epsilon\n");
}
TEST_CASE_FIXTURE(Fixture, "lists of types") {
  DefineOp("MyCall", {"Tlist: list(type)"}, {"args: Tlist"}, {"y: Tlist"});
  const Pattern y = Any();
  const Rules rules = MakeRules(
      Rule("call", Match<ops::Mul>(x, y)).ReplaceBy(New("MyCall", x, y)[1]));
  (*this)["y"].SetAttr("T", DataType::kInt32);
  Add(R"(mul = Mul(x, y)
         user = Neg(mul))");
  CHECK(Run(rules) == "1");
  CHECK((*this)["mul"].GetAttr<std::vector<DataType>>("Tlist").value() ==
        std::vector<DataType>{DataType::kFloat, DataType::kInt32});
  // The replacement is the new node's output 1.
  CHECK(Compare(R"(mul = MyCall(x, y)
                   user = Neg(mul:1))") == "");
}
TEST_CASE_FIXTURE(Fixture, "a constant in place of the root") {
  const Rules rules = MakeRules(
      Rule("fold", Match<ops::Relu>(x))
          .ReplaceBy(NewConst(Constant::Of(Shape{}, std::vector<float>{7}))));
  Add(R"(relu = Relu(x)
         user = Neg(relu))");
  CHECK(Run(rules) == "1");
  CHECK(Compare("user = Neg(relu)") == "");
  CHECK(Constant::Read((*this)["relu"])->GetElements<float>().value() ==
        std::vector<float>{7});
  CHECK_FALSE((*this)["relu"].HasAttr("T"));
}

}  // namespace
}  // namespace tfplug::new_nodes_test
