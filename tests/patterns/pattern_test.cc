// SPDX-License-Identifier: Apache-2.0
#include <tfplug/ops/all.h>
#include <tfplug/patterns/pattern.h>

#include <string>
#include <utility>
#include <vector>

#include "patterns/rules_fixture.h"

// Tests which nodes patterns match. The rules replace each match by a Neg of
// the first value, or explain why they do not.
namespace tfplug::pattern_test {
namespace {

Rules Negate(const Pattern& root, const Pattern& x) {
  return MakeRules(
      Rule("negate", root)
          .ReplaceBy(New<ops::Neg>(x).Set(ops::Neg::T_attr, DataType::kFloat)));
}

const auto& explain = [](RulesFixture& f, const Rules& rules,
                         const std::string& node) {
  return rules.Explain("negate", f[node], f.context());
};

TEST_CASE_FIXTURE(RulesFixture, "ops, inputs and input counts") {
  Add(R"(x, y = Placeholder()
         sum = AddV2(x, y)
         relu = Relu(sum)
         three = AddV2(x, y, x)
         relu3 = Relu(three)
         elu = Elu(x))");

  const Pattern x = Any(), y = Any();
  const auto sum = Match<ops::AddV2, ops::Add>(x, y);
  const Rules rules = Negate(Match<ops::Relu, ops::Elu>(sum), x);
  CHECK(explain(*this, rules, "relu") == "negate: matches");
  CHECK(explain(*this, rules, "sum") ==
        "negate: 'sum' (AddV2) is not Relu|Elu");
  CHECK(explain(*this, rules, "elu") ==
        "negate: input 0 of 'elu' (Elu) is 'x' (Placeholder), not AddV2|Add");
  CHECK(explain(*this, rules, "relu3") ==
        "negate: 'three' (AddV2) has 3 inputs, not 2");
  // A pattern without inputs matches any inputs.
  const Rules loose =
      Negate(Match<ops::Relu>(Match<ops::AddV2>().Named("a")), x);
  CHECK(explain(*this, loose, "relu3") == "negate: matches");
  CHECK(Explain(rules, "x") == "no rule has a Placeholder as its root\n");
  CHECK(Explain(rules, "elu") == explain(*this, rules, "elu") + "\n");
}

TEST_CASE_FIXTURE(RulesFixture, "ops and attributes by their names") {
  Add(R"(x = Placeholder()
         mine = MyOp(x))");
  const Pattern x = Any();
  const Rules rules = Negate(Match("MyOp", x).Where("n", 2), x);
  CHECK(explain(*this, rules, "mine") ==
        "negate: 'mine' (MyOp): attribute n is absent, not 2");
  (*this)["mine"].SetAttr("n", 3);
  CHECK(explain(*this, rules, "mine") ==
        "negate: 'mine' (MyOp): attribute n is 3, not 2");
  (*this)["mine"].SetAttr("n", 2);
  CHECK(Run(rules) == "1");
  CHECK(Compare("mine = Neg(x)") == "");
}

TEST_CASE_FIXTURE(RulesFixture, "attributes") {
  Add(R"(x, w = Placeholder()
         product = MatMul(x, w) {transpose_a=true, transpose_b=false})");
  const Pattern x = Any(), w = Any();
  const auto check = [&](const Pattern& pattern) {
    return explain(*this, Negate(pattern, x), "product");
  };
  const auto match = [&] { return Match<ops::MatMul>(x, w); };
  const std::string matches = "negate: matches";
  CHECK(check(match().Where(ops::MatMul::transpose_a, true)) == matches);
  CHECK(check(match().Where(ops::MatMul::transpose_a, false)) ==
        "negate: 'product' (MatMul): attribute transpose_a is true, not false");
  CHECK(check(match().Where(ops::MatMul::T_attr, DataType::kFloat)) == matches);
  CHECK(check(match().Where(ops::MatMul::T_attr, DataType::kHalf)) ==
        "negate: 'product' (MatMul): attribute T is float, not half");
  CHECK(check(match().WhereOneOf(ops::MatMul::T_attr,
                                 {DataType::kHalf, DataType::kFloat})) ==
        matches);
  CHECK(check(match().WhereOneOf(ops::MatMul::T_attr,
                                 {DataType::kHalf, DataType::kDouble})) ==
        "negate: 'product' (MatMul): attribute T is float, not one of half, "
        "double");
  const auto is_narrow = [](DataType type) { return DataTypeSize(type) < 4; };
  CHECK(
      check(match().WhereSatisfies(ops::MatMul::T_attr, "narrow", is_narrow)) ==
      "negate: 'product' (MatMul): attribute T is float, not narrow");
  CHECK(check(match().Where("T", DataType::kFloat)) == matches);
  // A value of another type.
  CHECK(check(match().Where("T", 1)) ==
        "negate: 'product' (MatMul): attribute T is float, not 1");
  CHECK(check(match().Where(ops::MatMul::grad_a, false)) ==
        "negate: 'product' (MatMul): attribute grad_a is absent, not false");
}

TEST_CASE_FIXTURE(RulesFixture,
                  "an attribute that only one of several ops has") {
  Add(R"(x = Placeholder()
         relu = Relu(x)
         leaky = LeakyRelu(x) {alpha=0.5})");
  const Pattern x = Any();
  const Rules rules = Negate(
      Match<ops::Relu, ops::LeakyRelu>(x).Where(ops::LeakyRelu::alpha, 0.25f),
      x);
  CHECK(explain(*this, rules, "relu") == "negate: matches");
  CHECK(explain(*this, rules, "leaky") ==
        "negate: 'leaky' (LeakyRelu): attribute alpha is 0.500000, not "
        "0.250000");
}

TEST_CASE_FIXTURE(RulesFixture, "commutative nodes") {
  Add(R"(x, b = Placeholder()
         neg = Sigmoid(x)
         ab = AddV2(neg, b)
         ba = AddV2(b, neg)
         bb = AddV2(b, b))");
  const Pattern x = Any(), b = Any();
  const auto inner = Match<ops::Sigmoid>(x).MayHaveOtherUses();
  const Rules one_way = Negate(Match<ops::AddV2>(inner, b), b);
  CHECK(explain(*this, one_way, "ab") == "negate: matches");
  CHECK(explain(*this, one_way, "ba") ==
        "negate: input 0 of 'ba' (AddV2) is 'b' (Placeholder), not Sigmoid");
  const Rules both = Negate(Match<ops::AddV2>(inner, b).Commutative(), x);
  CHECK(explain(*this, both, "ab") == "negate: matches");
  CHECK(explain(*this, both, "ba") == "negate: matches");
  CHECK(explain(*this, both, "bb") ==
        "negate: input 1 of 'bb' (AddV2) is 'b' (Placeholder), not Sigmoid");
  // The mismatch of the order that matches more nodes is reported.
  const auto deep = Match<ops::Relu>(
      Match<ops::AddV2>(Match<ops::Sigmoid>(inner), b).Commutative());
  Add("relu = Relu(ab)");
  CHECK(explain(*this, Negate(deep, x), "relu") ==
        "negate: input 0 of 'neg' (Sigmoid) is 'x' (Placeholder), not Sigmoid");
  CHECK(graph.RemoveNode((*this)["relu"]).ok());
  CHECK(Run(both) == "2");
  CHECK(Compare(R"(ab = Neg(x)
                   ba = Neg(x)
                   bb = AddV2(b, b))") == "");
}

TEST_CASE_FIXTURE(RulesFixture,
                  "a handle that is used twice matches one value or one node") {
  Add(R"(x = Split()
         y = Placeholder()
         sigmoid = Sigmoid(x)
         swish = Mul(x, sigmoid)
         other = Mul(y, sigmoid)
         port = Mul(x:1, sigmoid))");
  const Pattern x = Any("the argument");
  const auto sigmoid = Match<ops::Sigmoid>(x).MayHaveOtherUses();
  const Rules rules = Negate(Match<ops::Mul>(x, sigmoid), x);
  CHECK(explain(*this, rules, "swish") == "negate: matches");
  const std::string no =
      "negate: input 0 of 'sigmoid' (Sigmoid) is not the value that the "
      "argument matched before";
  CHECK(explain(*this, rules, "other") == no);
  CHECK(explain(*this, rules, "port") == no);

  Add(R"(sigmoid2 = Sigmoid(y)
         square = Mul(sigmoid2, sigmoid2)
         both = Mul(sigmoid, sigmoid2))");
  const Rules square = Negate(Match<ops::Mul>(sigmoid, sigmoid), x);
  CHECK(explain(*this, square, "square") == "negate: matches");
  CHECK(explain(*this, square, "both") ==
        "negate: input 1 of 'both' (Mul) is not the value that the same handle "
        "matched before");
  const auto gate = sigmoid.Named("the gate");
  CHECK(explain(*this, Negate(Match<ops::Mul>(gate, gate), x), "both") ==
        "negate: input 1 of 'both' (Mul) is not the value that the gate "
        "matched before");
}

TEST_CASE_FIXTURE(RulesFixture, "outputs") {
  Add(R"(x = Placeholder()
         norm = FusedBatchNormV3(x, x, x, x, x)
         y = Relu(norm)
         mean = Relu(norm:1))");
  const Pattern x = Any();
  const auto norm = Match<ops::FusedBatchNormV3>().MayHaveOtherUses();
  const Rules first = Negate(Match<ops::Relu>(norm), x);
  CHECK(explain(*this, first, "y") == "negate: matches");
  CHECK(explain(*this, first, "mean") ==
        "negate: input 0 of 'mean' (Relu) is output 1 of 'norm' "
        "(FusedBatchNormV3), not output 0");
  const Rules second =
      Negate(Match<ops::Relu>(norm[ops::FusedBatchNormV3::batch_mean]), x);
  CHECK(explain(*this, second, "mean") == "negate: matches");
}

TEST_CASE_FIXTURE(RulesFixture, "alternatives are tried in order") {
  Add(R"(x, b = Placeholder()
         bias = BiasAdd(x, b)
         relu1 = Relu(bias)
         sum = AddV2(b, x)
         relu2 = Relu(sum)
         relu3 = Relu(x))");
  const Pattern x = Any(), b = Any();
  const Pattern biased =
      OneOf(Match<ops::BiasAdd>(x, b), Match<ops::AddV2>(b, x));
  CHECK(Run(Negate(Match<ops::Relu>(biased), x)) == "2");
  CHECK(Compare(R"(relu1 = Neg(x)
                   relu2 = Neg(x)
                   relu3 = Relu(x))") == "");
  CHECK(explain(*this, Negate(Match<ops::Relu>(biased), x), "relu3") ==
        "negate: input 0 of 'relu3' (Relu) is 'x' (Placeholder), not BiasAdd");
}

TEST_CASE_FIXTURE(RulesFixture,
                  "optional nodes, within a pattern and as its root") {
  Add(R"(x = Placeholder()
         cast = Cast(x)
         sqrt1 = Sqrt(cast)
         sqrt2 = Sqrt(x)
         tanh = Tanh(sqrt2))");
  const Pattern x = Any();
  const auto cast = Match<ops::Cast>(x);
  const auto sqrt = Match<ops::Sqrt>(Optional(cast));
  const auto root = Optional(Match<ops::Tanh>(sqrt));
  bool had_cast = false, had_tanh = false;
  std::vector<Rule> rules;
  rules.push_back(
      Rule("negate", root)
          .OnlyIf("always",
                  [&](const Matched& m) {
                    had_cast = had_cast || m.has(cast);
                    had_tanh = had_tanh || m.node(root).op() == "Tanh";
                    return true;
                  })
          .ReplaceBy(New<ops::Neg>(x).Set(ops::Neg::T_attr, DataType::kFloat)));
  CHECK(Run(Rules(std::move(rules))) == "2");
  CHECK(had_cast);
  CHECK(had_tanh);
  CHECK(Compare(R"(sqrt1 = Neg(x)
                   tanh = Neg(x))") == "");
}

TEST_CASE_FIXTURE(RulesFixture, "malformed patterns and rules") {
  Add("x = Placeholder()");
  const Pattern x = Any();
  CHECK(Run(Negate(x, x)) ==
        "rule 'negate': the root of a pattern must be a node; use "
        "Match<...>(...)");
  CHECK(Run(Negate(Match<ops::Relu>(Optional(Match<ops::Neg>())), x)) ==
        "rule 'negate': an Optional node must have inputs: the first one takes "
        "its place where the node is absent");
  Pattern deep = x;
  for (int i = 0; i < 9; ++i) deep = Optional(Match<ops::Neg>(deep));
  for (int i = 0; i < 9; ++i) deep = Match<ops::AddV2>(deep, x).Commutative();
  CHECK(Run(Negate(deep, x)) ==
        "rule 'negate': the pattern has more than 256 variants; split it into "
        "several rules with fewer choices each");
  std::vector<Rule> nothing;
  nothing.push_back(Rule("nothing", Match<ops::Relu>(x)));
  CHECK(Run(Rules(std::move(nothing))) ==
        "rule 'nothing': it has no replacement; call ReplaceBy(...)");
}

}  // namespace
}  // namespace tfplug::pattern_test
