// SPDX-License-Identifier: Apache-2.0
#include <cxxabi.h>
#include <tfplug/ops/array.h>
#include <tfplug/ops/math.h>
#include <tfplug/ops/nn.h>
#include <tfplug/patterns/conditions.h>
#include <tfplug/patterns/constants.h>

#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "patterns/rules_fixture.h"

// Tests conditions on attributes, on alternatives and on constants.
using namespace tfplug;  // NOLINT: must not make abi::__cxa_demangle ambiguous.

namespace conditions_test {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

Rules Negate(const Pattern& root, const Pattern& x) {
  return MakeRules(
      Rule("negate", root)
          .ReplaceBy(New<ops::Neg>(x).Set(ops::Neg::T_attr, DataType::kFloat)));
}

struct Fixture : RulesFixture {
  Fixture() { Add("x = Placeholder()"); }
  std::string Check(const Pattern& root, const std::string& node = "root") {
    return Negate(root, x).Explain("negate", (*this)[node], context());
  }
  const Pattern x = Any();
  const std::string matches = "negate: matches";
};

TEST_CASE("tfplug's names beside those of <cxxabi.h>") {
  int status = -1;
  char* name =
      abi::__cxa_demangle(typeid(Shape).name(), nullptr, nullptr, &status);
  CHECK(std::string(name) == "tfplug::Shape");
  std::free(name);
}

TEST_CASE_FIXTURE(Fixture, "an absent attribute has the op's default") {
  DefineOp("MyOp", {"T: type", "fast: bool", "scale: float", "n: int"});
  Add("root = MyOp(x)");
  const auto match = [&] { return Match("MyOp", x); };
  CHECK(Check(match().Where("fast", false)) == matches);
  CHECK(Check(match().Where("fast", true)) ==
        "negate: 'root' (MyOp): attribute fast is absent, which means false, "
        "not true");
  CHECK(Check(match().WhereOneOf("scale", {1.0f, 2.0f})) == matches);
  CHECK(Check(match().WhereSatisfies<float>(
            "scale", "positive", [](float v) { return v > 0; })) == matches);
  CHECK(Check(match().Where("n", 2)) ==
        "negate: 'root' (MyOp): attribute n is absent, not 2");
  (*this)["root"].SetAttr("fast", true);
  CHECK(Check(match().Where("fast", false)) ==
        "negate: 'root' (MyOp): attribute fast is true, not false");
}
TEST_CASE_FIXTURE(Fixture, "the default of a typed op") {
  DefineOp("MatMul", {"T: type", "transpose_a: bool"});
  Add("root = MatMul(x, x)");
  const auto match = Match<ops::MatMul>(x, x);
  CHECK(Check(match.Where(ops::MatMul::transpose_a, false)) == matches);
}

TEST_CASE_FIXTURE(Fixture, "a condition on the alternative that matches") {
  const auto either = OneOf(Match<ops::Relu>(x), Match<ops::LeakyRelu>(x))
                          .Where("T", DataType::kFloat)
                          .Where(ops::LeakyRelu::alpha, 0.5f);
  Add(R"(relu = Relu(x)
         leaky = LeakyRelu(x) {alpha=0.25})");
  CHECK(Check(either, "relu") == matches);
  CHECK(Check(either, "leaky") ==
        "negate: 'leaky' (LeakyRelu): attribute alpha is 0.250000, not "
        "0.500000");
  (*this)["leaky"].SetAttr("alpha", 0.5f);
  CHECK(Check(either, "leaky") == matches);
  (*this)["relu"].SetAttr("T", DataType::kHalf);
  CHECK(Check(either, "relu") ==
        "negate: 'relu' (Relu): attribute T is half, not float");
}
TEST_CASE_FIXTURE(Fixture, "a condition on an optional node") {
  const auto cast =
      Optional(Match<ops::Cast>(x)).Where(ops::Cast::Truncate, false);
  const auto root = Match<ops::Sqrt>(cast);
  Add("root = Sqrt(x)");
  CHECK(Check(root) == matches);  // The input is x itself.
  Add("cast = Cast(x) {Truncate=true}");
  Add("root2 = Sqrt(cast)");
  // Without the Cast, x is the Cast's output, and nothing is removed.
  CHECK(Check(root, "root2") == matches);
  const auto inner =
      Match<ops::Sqrt>(Optional(Match<ops::Cast>(Match<ops::Relu>(x)))
                           .Where(ops::Cast::Truncate, false));
  Add(R"(relu = Relu(x)
         cast2 = Cast(relu) {Truncate=true}
         root3 = Sqrt(cast2))");
  CHECK(Check(inner, "root3") ==
        "negate: 'cast2' (Cast): attribute Truncate is true, not false");
  // Without the Cast, the Relu in its place need not meet its condition.
  Add("root4 = Sqrt(relu)");
  CHECK(graph.RemoveNode((*this)["root3"]).ok());
  CHECK(graph.RemoveNode((*this)["cast2"]).ok());
  CHECK(Check(inner, "root4") == matches);
}

struct ConstFixture : Fixture {
  ConstFixture() { Add("other = Placeholder()"); }
  std::string With(const Constant& value, const NodePattern<>& pattern) {
    if (graph.FindNode("c")) {
      CHECK((*this)["root"].SetInput(1, (*this)["other"]).ok());
      CHECK(graph.RemoveNode((*this)["c"]).ok());
      AddConst("c", value);
      CHECK((*this)["root"].SetInput(1, (*this)["c"]).ok());
    } else {
      AddConst("c", value);
      Add("root = Mul(x, c)");
    }
    return Check(Match<ops::Mul>(x, pattern));
  }
  static Constant Number(float value) {
    return Constant::Of(Shape{}, Floats{value});
  }
};

TEST_CASE_FIXTURE(ConstFixture, "a constant's number") {
  CHECK(With(Number(0.5f), MatchConst(0.5)) == matches);
  CHECK(With(Number(0.5f), MatchConst()) == matches);
  CHECK(With(Number(0.75f), MatchConst(0.5)) ==
        "negate: 'c' (Const): attribute value is 0.75, not 0.5");
  CHECK(With(Number(0.707107f), MatchConst(0.70710678)) == matches);
  CHECK(With(Number(0.7072f), MatchConst(0.70710678)) != matches);
  CHECK(With(Number(0.7072f), MatchConst(0.70710678, 1e-3)) == matches);
  CHECK(With(Number(0.1f), MatchConst(0.1, 0)) == matches);  // as a float
  CHECK(With(Constant::Of(Shape{}, std::vector<double>{0.1f}),
             MatchConst(0.1, 0)) != matches);
  CHECK(With(Number(-0.5f), MatchConst(0.5)) != matches);
  CHECK(With(Number(0), MatchConst(0)) == matches);
  CHECK(With(Number(1e-30f), MatchConst(0)) != matches);
}
TEST_CASE_FIXTURE(ConstFixture, "a constant of equal numbers") {
  CHECK(With(Constant::Of(Shape{2, 2}, Floats{3, 3, 3, 3}), MatchConst(3)) ==
        matches);
  CHECK(With(Constant::Of(Shape{3}, Floats{3, 3, 2}), MatchConst(3)) ==
        "negate: 'c' (Const): attribute value is a tensor of type float and "
        "shape [3], not 3");
  CHECK(With(Constant::Of(Shape{2}, Floats{2, 2}), MatchConst(3)) ==
        "negate: 'c' (Const): attribute value is a tensor of type float and "
        "shape [2], all 2, "
        "not 3");
  CHECK(With(Constant::Of(Shape{0}, Floats{}), MatchConst(3)) != matches);
}
TEST_CASE_FIXTURE(ConstFixture, "numbers of narrow types are rounded") {
  const Half half(0.044715f);
  CHECK(With(Constant::Of(Shape{}, std::vector<Half>{half}),
             MatchConst(0.044715)) == matches);
  const BFloat16 brain(0.044715f);
  CHECK(With(Constant::Of(Shape{}, std::vector<BFloat16>{brain}),
             MatchConst(0.044715)) == matches);
  CHECK(With(Constant::Of(Shape{}, std::vector<double>{0.044715}),
             MatchConst(0.044715)) == matches);
}
TEST_CASE_FIXTURE(ConstFixture, "a constant's integers") {
  const auto perm = Constant::Of(Shape{4}, std::vector<int32_t>{0, 3, 1, 2});
  CHECK(With(perm, MatchConst({0, 3, 1, 2})) == matches);
  CHECK(With(perm, MatchConst({0, 2, 3, 1})) ==
        "negate: 'c' (Const): attribute value is [0, 3, 1, 2], not [0, 2, 3, "
        "1]");
  CHECK(With(Constant::Of(Shape{}, Ints{3}), MatchConst({3})) == matches);
  CHECK(With(Constant::Of(Shape{}, Ints{3}), MatchConst(3)) == matches);
  CHECK(With(Number(3), MatchConst({3})) != matches);
  CHECK(With(Constant::Of(Shape{2, 2}, Ints{1, 2, 3, 4}),
             MatchConst({1, 2, 3, 4})) ==
        "negate: 'c' (Const): attribute value is a tensor of type int64 and "
        "shape [2,2], not [1, 2, 3, 4]");
}
TEST_CASE_FIXTURE(ConstFixture, "a constant without a tensor") {
  AddConst("c", Number(3)).SetAttr("value", int64_t{4});
  Add("root = Mul(x, c)");
  CHECK(Check(Match<ops::Mul>(x, MatchConst(3))) ==
        "negate: 'c' (Const): attribute value is 4, not 3");
  CHECK(Check(Match<ops::Mul>(x, MatchConst())) == matches);
}
TEST_CASE_FIXTURE(ConstFixture, "a predicate of a constant") {
  const auto is_small = [](const Constant& c) { return c.num_elements() < 4; };
  const auto small = MatchConst("less than 4 elements", is_small);
  CHECK(With(Constant::Of(Shape{2}, Floats{2, 1}), small) == matches);
  CHECK(With(Constant::Of(Shape{5}, Floats{1, 2, 3, 4, 5}), small) ==
        "negate: 'c' (Const): attribute value is a tensor of type float and "
        "shape [5], not "
        "less than 4 elements");
}

}  // namespace
}  // namespace conditions_test
