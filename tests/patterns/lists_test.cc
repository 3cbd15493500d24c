// SPDX-License-Identifier: Apache-2.0
#include <tfplug/ops/array.h>
#include <tfplug/ops/math.h>
#include <tfplug/ops/nn.h>
#include <tfplug/patterns/choices.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "patterns/rules_fixture.h"

// Tests patterns that match any number of inputs (Each) or of nodes in a row
// (Repeated).
namespace tfplug::lists_test {
namespace {

using Floats = std::vector<float>;

struct Fixture : RulesFixture {
  Fixture() {
    DefineOp("AddN", {"N: int", "T: type"}, {"inputs: N * T"});
    DefineOp("ConcatV2", {"N: int", "T: type", "Tidx: type"},
             {"values: N * T", "axis: Tidx"});
    DefineOp("Neg", {"T: type"}, {"x: T"});
    DefineOp("Placeholder", {"T: type"});
    DefineOp("Relu", {"T: type"}, {"x: T"});
    Add(R"(a, b, c = Placeholder()
           axis = Placeholder() {T=int32}
           neg_a = Neg(a)
           neg_b = Neg(b)
           neg_c = Neg(c))");
  }
  const Pattern x = Any("element");
};

// AddN(Neg(x)...) -> Neg(AddN(x...))
Rules MoveNeg(const Pattern& x) {
  const auto neg = Match<ops::Neg>(x);
  const auto sum = Match<ops::AddN>(Each(neg));
  return MakeRules(
      Rule("move", sum).ReplaceBy(New<ops::Neg>(New<ops::AddN>(x))));
}

TEST_CASE_FIXTURE(Fixture, "a list of any length") {
  const Rules rules = MoveNeg(x);
  SUBCASE("of one") {
    Add("sum = AddN(neg_a)");
    CHECK(Run(rules) == "1");
    CHECK(Compare(R"(neg_b = Neg(b)
                     neg_c = Neg(c)
                     sum = Neg(sum/AddN)
                     sum/AddN = AddN(a))") == "");
  }
  SUBCASE("of three") {
    Add("sum = AddN(neg_c, neg_a, neg_b)");
    CHECK(Run(rules) == "1");
    CHECK(Compare(R"(sum = Neg(sum/AddN)
                     sum/AddN = AddN(c, a, b) {N=3, T=float})") == "");
  }
  SUBCASE("with the same node twice") {
    Add("sum = AddN(neg_a, neg_a, neg_b, neg_c)");
    CHECK(Run(rules) == "1");
    CHECK(Compare(R"(sum = Neg(sum/AddN)
                     sum/AddN = AddN(a, a, b, c))") == "");
  }
  SUBCASE("an element that does not match") {
    Add("sum = AddN(neg_a, b)");
    CHECK(Explain(rules, "sum") ==
          "move: input 1 of 'sum' (AddN) is 'b' (Placeholder), not Neg\n");
    CHECK(Run(rules) == "0");
  }
  SUBCASE("an element that is used elsewhere") {
    Add(R"(sum = AddN(neg_a, neg_b)
           other = Relu(neg_b))");
    CHECK(Explain(rules, "sum") ==
          "move: 'neg_b' (Neg) is also used by 'other' (Relu)\n");
    CHECK(Run(rules) == "0");
  }
}

TEST_CASE_FIXTURE(Fixture, "a long list takes linear time") {
  std::vector<std::string> inputs;
  for (int i = 0; i < 20000; ++i) inputs.push_back(absl::StrCat("n", i));
  const std::string names = absl::StrJoin(inputs, ", ");
  Add(names + " = Neg(a)\nsum = AddN(" + names + ")");
  CHECK(Run(MoveNeg(x)) == "1");
  CHECK(graph.FindNode("sum/AddN").num_inputs() == 20000);
  CHECK(graph.num_nodes() == 9);
}

TEST_CASE_FIXTURE(Fixture, "a list before another input") {
  const Pattern axis = Any("axis");
  const auto concat = Match<ops::ConcatV2>(Each(Match<ops::Neg>(x)), axis);
  const Rules rules = MakeRules(
      Rule("move", concat)
          .ReplaceBy(New<ops::Neg>(New<ops::ConcatV2>(Each(x), axis))));
  Add("concat = ConcatV2(neg_a, neg_b, neg_c, axis)");
  CHECK(Run(rules) == "1");
  CHECK(Compare(R"(
      concat = Neg(concat/ConcatV2)
      concat/ConcatV2 = ConcatV2(a, b, c, axis) {N=3, Tidx=int32})") == "");
}

TEST_CASE_FIXTURE(Fixture, "all elements share an operand with the pattern") {
  const Pattern factor = Any("factor");
  const auto product = Match<ops::Mul>(x, factor);
  const auto root =
      Match<ops::RealDiv>(Match<ops::AddN>(Each(product)), factor);
  std::vector<Output> values;
  const Rules rules = MakeRules(Rule("cancel", root)
                                    .OnlyIf("always",
                                            [&](const Matched& m) {
                                              values = m.all(x);
                                              CHECK(m[x] == values[0]);
                                              CHECK(m.all(factor).size() == 1);
                                              return true;
                                            })
                                    .ReplaceBy(New<ops::AddN>(x)));
  Add(R"(p = Mul(a, c)
         q = Mul(b, c)
         sum = AddN(p, q))");
  SUBCASE("the same operand") {
    Add("div = RealDiv(sum, c)");
    CHECK(Run(rules) == "1");
    CHECK(graph.FindNode("div").op() == "AddN");
    CHECK(values.size() == 2);
    CHECK(values[1].node.name() == "b");
  }
  SUBCASE("another operand") {
    Add("div = RealDiv(sum, a)");
    CHECK(Explain(rules, "div") ==
          "cancel: 'c' (Placeholder) is not 'a' (Placeholder), which the same "
          "handle matched elsewhere\n");
    CHECK(Run(rules) == "0");
  }
}

TEST_CASE_FIXTURE(Fixture, "all elements are a value of the pattern") {
  const Rules rules = MakeRules(
      Rule("count",
           Match<ops::RealDiv>(Match<ops::AddN>(Each(x)).MayHaveOtherUses(), x))
          .ReplaceBy(New<ops::Relu>(x)));
  Add(R"(same = AddN(a, a)
         other = AddN(a, b)
         div_same = RealDiv(same, a)
         div_other = RealDiv(other, a))");
  CHECK(Explain(rules, "div_same") == "count: matches\n");
  CHECK(Explain(rules, "div_other") ==
        "count: 'b' (Placeholder) is not 'a' (Placeholder), which the same "
        "handle matched elsewhere\n");
}
TEST_CASE_FIXTURE(Fixture, "too few inputs for a list") {
  const Pattern axis = Any("axis");
  const Rules rules = MakeRules(
      Rule("drop", Match<ops::ConcatV2>(Each(Match<ops::Neg>(x)), axis))
          .ReplaceBy(New<ops::Relu>(axis)));
  Add("concat = ConcatV2()");
  CHECK(Explain(rules, "concat") ==
        "drop: 'concat' (ConcatV2) has 0 inputs, not at least 1\n");
  CHECK(Run(rules) == "0");
}

TEST_CASE_FIXTURE(Fixture, "alternatives within a list") {
  const auto element = OneOf(Match<ops::Neg>(x), Match<ops::Relu>(x));
  const Rules rules = MakeRules(Rule("drop", Match<ops::AddN>(Each(element)))
                                    .ReplaceBy(New<ops::AddN>(x)));
  Add(R"(relu = Relu(c)
         sum = AddN(neg_a, relu, neg_b))");
  CHECK(Run(rules) == "1");
  CHECK(Compare(R"(neg_c = Neg(c)
                   sum = AddN(a, c, b))") == "");
}

TEST_CASE_FIXTURE(Fixture, "lists of different alternatives") {
  const auto element = OneOf(Match<ops::Neg>(x), x);
  const Rules rules = MakeRules(Rule("drop", Match<ops::AddN>(Each(element)))
                                    .ReplaceBy(New<ops::ConcatV2>(x, x)));
  Add(R"(relu = Relu(c)
         user = Neg(relu)
         other = Neg(b)
         first = AddN(b, neg_a)
         second = AddN(neg_b, relu))");
  CHECK(Run(rules) == "2");
  CHECK(Compare(R"(first = ConcatV2(b, a, b, a)
                   neg_c = Neg(c)
                   other = Neg(b)
                   relu = Relu(c)
                   second = ConcatV2(b, relu, b, relu)
                   user = Neg(relu))") == "");
}

TEST_CASE_FIXTURE(Fixture, "two long lists in one graph") {
  const auto element = OneOf(Match<ops::Neg>(x), Match<ops::Relu>(x));
  const Rules rules = MakeRules(Rule("drop", Match<ops::AddN>(Each(element)))
                                    .ReplaceBy(New<ops::AddN>(x)));
  // The elements of the second list are in another order, and one is used
  // elsewhere.
  for (const char* list : {"first", "second", "third"}) {
    std::vector<std::string> inputs;
    for (int i = 0; i < 30; ++i) {
      inputs.push_back(absl::StrCat(list, i));
      const bool is_relu = (i < 10) == (list[0] == 'f');
      Add(inputs.back() + (is_relu ? " = Relu(a)" : " = Neg(a)"));
    }
    Add(absl::StrCat(list, " = AddN(", absl::StrJoin(inputs, ", "), ")"));
  }
  Add("user = Sqrt(second3)");
  CHECK(Run(rules) == "2");
  CHECK(graph.FindNode("first").input(29).node.name() == "a");
  CHECK(graph.FindNode("second").input(29).node.name() == "second29");
  CHECK(graph.FindNode("third").input(29).node.name() == "a");
  CHECK(Explain(rules, "second") ==
        "drop: 'second3' (Neg) is also used by 'user' (Sqrt)\n");
}

TEST_CASE_FIXTURE(Fixture, "a chain of any length") {
  const auto identity = Match<ops::Identity>(x).Named("copy");
  std::vector<Output> chain;
  const Rules rules =
      MakeRules(Rule("skip", Match<ops::Relu>(Repeated(identity)))
                    .OnlyIf("there is a chain",
                            [&](const Matched& m) {
                              if (!m.has(identity)) return false;
                              chain = m.all(identity);
                              return true;
                            })
                    .ReplaceBy(New<ops::Relu>(x)));
  Add(R"(i1 = Identity(a)
         i2 = Identity(i1)
         i3 = Identity(i2))");
  SUBCASE("of none") {
    Add("relu = Relu(a)");
    CHECK(Explain(rules, "relu") ==
          "skip: condition not met: there is a chain\n");
    CHECK(Run(rules) == "0");
  }
  SUBCASE("of three") {
    Add("relu = Relu(i3)");
    CHECK(Run(rules) == "1");
    CHECK(chain.size() == 3);
    CHECK(graph.FindNode("relu").input(0).node.name() == "a");
    CHECK_FALSE(graph.FindNode("i1"));
  }
  SUBCASE("that is used in the middle") {
    Add(R"(relu = Relu(i3)
           other = Neg(i2))");
    CHECK(Explain(rules, "relu") ==
          "skip: 'i2' (Identity) is also used by 'other' (Neg)\n");
    CHECK(Run(rules) == "0");
  }
}
TEST_CASE_FIXTURE(Fixture, "a chain that is a cycle ends") {
  const Rules rules = MakeRules(
      Rule("skip", Match<ops::Relu>(Repeated(Match<ops::Identity>(x))))
          .ReplaceBy(New<ops::Neg>(x)));
  Add(R"(i1 = Identity(a)
         i2 = Identity(i1)
         relu = Relu(i2))");
  CHECK((*this)["i1"].SetInput(0, (*this)["i2"]).ok());
  CHECK(Explain(rules, "relu") ==
        "skip: 'i2' (Identity) would be removed, but is also an operand of the "
        "match\n");
}
TEST_CASE_FIXTURE(Fixture, "a long chain takes linear time") {
  std::string last = "a";
  for (int i = 0; i < 20000; ++i) {
    const std::string name = "i" + std::to_string(i);
    Add(name + " = Identity(" + last + ")");
    last = name;
  }
  Add("relu = Relu(" + last + ")");
  const Rules rules = MakeRules(
      Rule("skip", Match<ops::Relu>(Repeated(Match<ops::Identity>(x))))
          .ReplaceBy(New<ops::Neg>(x)));
  CHECK(Run(rules) == "1");
  CHECK(graph.FindNode("relu").input(0).node.name() == "a");
  CHECK(graph.num_nodes() == 8);
}
TEST_CASE_FIXTURE(Fixture, "a chain of nodes with further inputs") {
  const auto add = Match<ops::AddV2>(x, MatchConst()).Commutative();
  const auto neg = Match<ops::Neg>(Repeated(add));
  int64_t sum = 0;
  const Rules rules =
      MakeRules(Rule("sum", neg)
                    .OnlyIf("always",
                            [&](const Matched& m) {
                              sum += static_cast<int64_t>(m.all(add).size());
                              return true;
                            })
                    .ReplaceBy(New<ops::Relu>(x)));
  Add(R"(one: float = 1
         s1 = AddV2(a, one)
         s2 = AddV2(one, s1)
         neg = Neg(s2))");
  CHECK(Run(rules) == "4");  // Also neg_a, neg_b and neg_c.
  CHECK(graph.FindNode("neg").input(0).node.name() == "a");
  CHECK(sum == 2);
}

TEST_CASE_FIXTURE(Fixture, "malformed lists and chains") {
  const auto neg = Match<ops::Neg>(x);
  const auto inner = Match<ops::AddN>(Each(neg));
  const std::string nested =
      "rule 'r': an Each(...) or Repeated(...) cannot contain another one";
  Add("sum = AddN(neg_a)");
  CHECK(Run(MakeRules(Rule("r", Match<ops::AddN>(Each(inner))).ReplaceBy(x))) ==
        nested);
  CHECK(Run(MakeRules(
            Rule("r", Match<ops::AddN>(Each(Match<ops::Relu>(Repeated(neg)))))
                .ReplaceBy(x))) == nested);
  CHECK(Run(MakeRules(Rule("r", Match<ops::AddN>(Each(neg)))
                          .ReplaceBy(x)
                          .AlsoReplace(neg, x))) ==
        "rule 'r': AlsoReplace() cannot replace a node of an Each(...) or "
        "Repeated(...)");
  CHECK(Run(MakeRules(Rule("r", Match<ops::Relu>(Repeated(Match<ops::Neg>())))
                          .ReplaceBy(x))) ==
        "rule 'r': a Repeated node must have inputs: the chain continues in "
        "the first one");
}

}  // namespace
}  // namespace tfplug::lists_test
