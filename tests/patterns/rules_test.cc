// SPDX-License-Identifier: Apache-2.0
#include <tfplug/ops/all.h>
#include <tfplug/patterns/rules.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "patterns/rules_fixture.h"

// Tests how the engine replaces a match, and when it does not.
namespace tfplug::rules_test {
namespace {

// A rule for relu(bias(matmul(x, w), b)). The fixture has a graph that matches.
struct FuseMatMul {
  Pattern x = Any(), w = Any(), b = Any();
  NodePattern<ops::MatMul> product = Match<ops::MatMul>(x, w);
  NodePattern<ops::BiasAdd> biased = Match<ops::BiasAdd>(product, b);
  NodePattern<ops::Relu, ops::Elu> activation =
      Match<ops::Relu, ops::Elu>(biased);

  Rule MakeRule(std::string name, const Pattern& root) const {
    using Fused = ops::InternalFusedMatMul;
    return Rule(std::move(name), root)
        .ReplaceBy(New<Fused>(x, w, b)
                       .Copy(product, Fused::T_attr)
                       .Copy(product, Fused::transpose_a)
                       .Copy(product, Fused::transpose_b)
                       .Set(Fused::num_args, 1)
                       .Set(Fused::fused_ops, [*this](const Matched& m) {
                         std::vector<std::string> ops{"BiasAdd"};
                         if (m.has(activation)) {
                           ops.emplace_back(m.node(activation).op());
                         }
                         return ops;
                       }));
  }
  Rules MakeRules() const {
    std::vector<Rule> rules;
    rules.push_back(MakeRule("fuse", Optional(activation)));
    return Rules(std::move(rules));
  }
};

struct Fixture : RulesFixture {
  Fixture() {
    Add(R"(x, w, b = Placeholder()
           matmul = MatMul(x, w) {transpose_b=true}
           bias = BiasAdd(matmul, b)
           relu = Relu(bias))");
  }
  std::string Explanation() {
    return rules.Explain("fuse", graph.FindNode("relu"), context());
  }
  const Rules rules = FuseMatMul().MakeRules();
};

TEST_CASE_FIXTURE(Fixture, "the new node takes the root's place") {
  Add("user = Neg(relu, ^relu)");
  (*this)["relu"].SetAttr("_output_shapes", "kept");
  (*this)["relu"].SetAttr("old", 1);
  CHECK(Run(rules) == "1");
  // Attributes that are neither copied nor set have the op's defaults.
  CHECK(Compare(R"(
      relu = _FusedMatMul(x, w, b) {
          T=float, transpose_b=true, num_args=1, fused_ops=["BiasAdd", "Relu"],
          _output_shapes="kept", !old,
          transpose_a=false, epsilon=1.0}
      user = Neg(relu, ^relu))") == "");
  CHECK(graph.num_nodes() == 5);
  // Nothing matches any more.
  CHECK(Run(rules) == "0");
}

TEST_CASE_FIXTURE(Fixture, "a graph without the ops is left unchanged") {
  for (const char* name : {"relu", "bias"}) {
    CHECK(graph.RemoveNode(graph.FindNode(name)).ok());
  }
  const std::string before = graph.ToString();
  absl::StatusOr<Graph> again = Graph::Parse(before);
  REQUIRE(again.ok());
  CHECK(rules.Run(*again, context()).value() == 0);
  CHECK_FALSE(again->changed());
}

TEST_CASE_FIXTURE(Fixture, "an inner node that is needed outside the match") {
  SUBCASE("by data") {
    Add("other = Neg(matmul)");
    CHECK(Explanation() ==
          "fuse: 'matmul' (MatMul) is also used by 'other' (Neg)");
  }
  SUBCASE("by a control edge") {
    Add("other = Neg(x, ^matmul)");
    CHECK(Explanation() ==
          "fuse: 'other' (Neg) has a control edge from 'matmul' (MatMul)");
  }
  SUBCASE("preserved") {
    Preserve("matmul");
    CHECK(Explanation() == "fuse: 'matmul' (MatMul) must be preserved");
  }
  SUBCASE("on another device") {
    (*this)["matmul"].SetDevice("/device:CPU:0");
    CHECK(Explanation() ==
          "fuse: 'matmul' (MatMul) is on device '/device:CPU:0', but 'relu' "
          "(Relu) is on '" +
              device + "'");
  }
  CHECK(Run(rules) == "0");
  CHECK_FALSE(graph.FindNode("relu").op() == "_FusedMatMul");
}

TEST_CASE_FIXTURE(Fixture, "a value that a gradient uses") {
  Add("grad = ReluGrad(x, bias)");
  CHECK(Explanation() ==
        "fuse: 'bias' (BiasAdd) is also used by 'grad' (ReluGrad)");
  // The smaller match, without the activation, is fused; the gradient uses it.
  CHECK(Run(rules) == "1");
  CHECK(Compare(R"(bias = _FusedMatMul(x, w, b)
                   grad = ReluGrad(x, bias)
                   relu = Relu(bias))") == "");
}

TEST_CASE_FIXTURE(Fixture, "a preserved root keeps its name") {
  Preserve("relu");
  CHECK(Run(rules) == "1");
  CHECK(Compare("relu = _FusedMatMul(x, w, b)") == "");
}

TEST_CASE_FIXTURE(
    RulesFixture,
    "only nodes on the pass's device, or on none yet, are replaced") {
  const Pattern x = Any();
  const Rules negate = MakeRules(
      Rule("negate", Match<ops::Relu>(x))
          .ReplaceBy(New<ops::Neg>(x).Set(ops::Neg::T_attr, DataType::kFloat)));
  Add(R"(x = Placeholder()
         there = Relu(x)
         elsewhere = Relu(x) @/device:CPU:0
         nowhere = Relu(x) @)");
  CHECK(Explain(negate, "elsewhere") ==
        "negate: 'elsewhere' (Relu) is on device '/device:CPU:0', not on "
        "the pass's device\n");
  CHECK(Run(negate) == "2");
  CHECK(Compare(R"(elsewhere = Relu(x) @/device:CPU:0
                   nowhere = Neg(x) @
                   there = Neg(x))") == "");
}

TEST_CASE_FIXTURE(Fixture, "the new node inherits the control inputs") {
  Add("a, c, d = NoOp()");
  CHECK(graph.FindNode("matmul").AddControl(graph.FindNode("a")).ok());
  CHECK(graph.FindNode("matmul").AddControl(graph.FindNode("c")).ok());
  CHECK(graph.FindNode("bias").AddControl(graph.FindNode("c")).ok());
  CHECK(graph.FindNode("relu").AddControl(graph.FindNode("d")).ok());
  // A control edge within the match.
  CHECK(graph.FindNode("relu").AddControl(graph.FindNode("matmul")).ok());
  CHECK(Run(rules) == "1");
  CHECK(Compare("relu = _FusedMatMul(x, w, b, ^d, ^c, ^a)") == "");
}

TEST_CASE_FIXTURE(RulesFixture, "a root with another output in use") {
  const Pattern x = Any();
  const Rules norm = MakeRules(
      Rule("norm", Match<ops::FusedBatchNormV3>(x, Any(), Any(), Any(), Any()))
          .ReplaceBy(x));
  Add(R"(x = Placeholder()
         n = FusedBatchNormV3(x, x, x, x, x)
         user = Neg(n))");
  SUBCASE("no other output is used") {
    CHECK(Run(norm) == "1");
    CHECK(Compare("user = Neg(x)") == "");
  }
  SUBCASE("by a node") {
    Add("mean = Neg(n:1)");
    CHECK(Explain(norm, "n") ==
          "norm: output 1 of 'n' (FusedBatchNormV3) may be used, but the "
          "replacement does not provide it\n");
    CHECK(Run(norm) == "0");
  }
  SUBCASE("because it is preserved") {
    Preserve("n");
    CHECK(Run(norm) == "0");
  }
}

TEST_CASE_FIXTURE(RulesFixture, "an operand that would be removed") {
  const Pattern x = Any(), y = Any();
  const Rules add =
      MakeRules(Rule("add", Match<ops::Mul>(Match<ops::Relu>(x), y))
                    .ReplaceBy(New<ops::AddV2>(x, y).Set(ops::AddV2::T_attr,
                                                         DataType::kFloat)));
  Add(R"(x = Placeholder()
         relu = Relu(x)
         mul = Mul(relu, relu))");
  CHECK(Explain(add, "mul") ==
        "add: 'relu' (Relu) would be removed, but is also an operand of the "
        "match\n");
  CHECK(Run(add) == "0");
}

TEST_CASE_FIXTURE(RulesFixture,
                  "one node does not match two nodes of a pattern") {
  const Pattern x = Any(), y = Any();
  const Rules two = MakeRules(
      Rule("two", Match<ops::Mul>(Match<ops::Relu>(x), Match<ops::Relu>(y)))
          .ReplaceBy(x));
  Add(R"(x = Placeholder()
         relu = Relu(x)
         mul = Mul(relu, relu))");
  CHECK(Explain(two, "mul") ==
        "two: 'relu' (Relu) would match two nodes of the pattern\n");
  CHECK(Run(two) == "0");
}

// Transpose(Transpose(x)) -> x, whatever the permutations.
Rules CancelTransposes() {
  const Pattern x = Any();
  const auto inner = Match<ops::Transpose>(x, Any()).MayHaveOtherUses();
  return MakeRules(
      Rule("cancel", Match<ops::Transpose>(inner, Any())).ReplaceBy(x));
}

struct TransposeFixture : RulesFixture {
  TransposeFixture() {
    Add(R"(x, p = Placeholder()
           t1 = Transpose(x, p)
           t2 = Transpose(t1, p)
           user = Neg(t2))");
  }
  const Rules rules = CancelTransposes();
};

TEST_CASE_FIXTURE(TransposeFixture, "a value takes the root's place") {
  CHECK(Run(rules) == "1");
  CHECK(Compare("user = Neg(x)") == "");
  CHECK(graph.num_nodes() == 3);
}
TEST_CASE_FIXTURE(TransposeFixture, "a node with other uses is kept") {
  Add("other = Neg(t1)");
  SUBCASE("by another node") {}
  SUBCASE("because it is fetched") {
    CHECK(graph.RemoveNode(graph.FindNode("other")).ok());
    Add("other = Neg(x)");
    Fetch("t1");
  }
  CHECK(Run(rules) == "1");
  CHECK(graph.FindNode("t1"));
  CHECK_FALSE(graph.FindNode("t2"));
}
TEST_CASE_FIXTURE(TransposeFixture,
                  "no rule looks through a node that is fed") {
  Preserve("t1");
  CHECK(Explain(rules, "t2") ==
        "cancel: 't1' (Transpose) may be fed with another value\n");
  CHECK(Run(rules) == "0");
}
TEST_CASE_FIXTURE(RulesFixture, "a constant that is fed is none") {
  const Pattern x = Any();
  const Rules rules =
      MakeRules(Rule("half", Match<ops::Mul>(x, MatchConst(0.5))).ReplaceBy(x));
  Add(R"(x = Placeholder()
         c: float = 0.5
         mul = Mul(x, c))");
  SUBCASE("fetched") {
    Fetch("c");
    CHECK(Run(rules) == "1");
  }
  SUBCASE("fed") {
    Preserve("c");
    CHECK(Explain(rules, "mul") ==
          "half: 'c' (Const) may be fed with another value\n");
    CHECK(Run(rules) == "0");
  }
}
TEST_CASE_FIXTURE(TransposeFixture,
                  "a root whose name must remain becomes an Identity") {
  (*this)["t2"].SetAttr("_class", "kept");
  SUBCASE("preserved") {
    Preserve("t2");
    CHECK(Run(rules) == "1");
    CHECK(Compare(R"(t2 = Identity(x)
                     user = Neg(t2))") == "");
  }
  SUBCASE("with a control use") {
    Add("waits = Neg(x, ^t2)");
    CHECK(Run(rules) == "1");
    CHECK(Compare(R"(t2 = Identity(x)
                     user = Neg(t2)
                     waits = Neg(x, ^t2))") == "");
  }
  SUBCASE("with a control input") {
    CHECK((*this)["t1"].AddControl(Add("a = NoOp()")).ok());
    CHECK(Run(rules) == "1");
    CHECK(Compare(R"(t2 = Identity(x, ^a)
                     user = Neg(t2))") == "");
  }
  const Node identity = graph.FindNode("t2");
  CHECK(identity.GetAttr<DataType>("T").value() == DataType::kFloat);
  CHECK(identity.GetAttr<std::string>("_class").value() == "kept");
  CHECK(identity.GetAttrs().size() == 2);
}
TEST_CASE_FIXTURE(TransposeFixture,
                  "only the first of overlapping matches is replaced") {
  Add(R"(t3 = Transpose(t2, p)
         user3 = Neg(t3))");
  // Either pair could be replaced.
  CHECK(Run(rules) == "1");
  CHECK(Compare(R"(t3 = Transpose(x, p)
                   user = Neg(x)
                   user3 = Neg(t3))") == "");
}
TEST_CASE_FIXTURE(RulesFixture, "rules run until nothing matches") {
  // Nested pairs, listed in the graph from the outside in.
  std::string text = "x, p = Placeholder()\nt8 = Identity(x)\n";
  for (int i = 0; i < 8; ++i) {
    absl::StrAppend(&text, "t", i, " = Transpose(t", i + 1, ", p)\n");
  }
  Add(text + "user = Neg(t0)");
  CHECK(Run(CancelTransposes()) == "4");
  CHECK(Compare("t8 = Identity(x)\nuser = Neg(t8)") == "");
}

TEST_CASE_FIXTURE(RulesFixture, "a rule that does not terminate is an error") {
  const Pattern x = Any();
  std::vector<Rule> rules;
  SUBCASE("its replacement equals its pattern") {
    rules.push_back(Rule("same", Match<ops::Neg>(x))
                        .ReplaceBy(New<ops::Neg>(x).Set(ops::Neg::T_attr,
                                                        DataType::kFloat)));
  }
  SUBCASE("its replacement grows") {
    const auto neg = New<ops::Neg>(x).Set(ops::Neg::T_attr, DataType::kFloat);
    rules.push_back(Rule("same", Match<ops::Neg>(x))
                        .ReplaceBy(New<ops::Neg>(neg).Set(ops::Neg::T_attr,
                                                          DataType::kFloat)));
  }
  Add(R"(x = Placeholder()
         n = Neg(x))");
  CHECK(Run(Rules(std::move(rules))).find("rule 'same', node 'n") == 0);
}

TEST_CASE_FIXTURE(Fixture, "larger patterns and higher priorities come first") {
  const FuseMatMul fuse;
  std::vector<Rule> rules;
  rules.push_back(fuse.MakeRule("small", fuse.biased));
  rules.push_back(fuse.MakeRule("big", fuse.activation));
  SUBCASE("by size") {
    CHECK(Run(Rules(std::move(rules))) == "1");
    CHECK(Compare("relu = _FusedMatMul(x, w, b)") == "");
  }
  SUBCASE("by priority") {
    rules[0] = std::move(rules[0]).Priority(1);
    CHECK(Run(Rules(std::move(rules))) == "1");
    CHECK(Compare(R"(bias = _FusedMatMul(x, w, b)
                     relu = Relu(bias))") == "");
  }
}

TEST_CASE_FIXTURE(
    Fixture, "of several rules at one root, the first that applies is used") {
  const Pattern x = Any();
  std::vector<Rule> rules;
  const auto add_rule = [&](const char* name, bool applies) {
    rules.push_back(Rule(name, Match<ops::Relu>(x))
                        .OnlyIf(std::string("it is time for ") + name,
                                [=](const Matched&) { return applies; })
                        .ReplaceBy(New<ops::Neg>(x)
                                       .Set(ops::Neg::T_attr, DataType::kFloat)
                                       .Set("name", std::string(name))));
  };
  DefineOp("Neg", {"T: type", "name: string"});
  add_rule("first", false);
  add_rule("second", true);
  add_rule("third", true);
  const Rules several(std::move(rules));
  CHECK(Explain(several, "relu") ==
        "first: condition not met: it is time for first\n"
        "second: matches\n"
        "third: matches\n");
  CHECK(several.Explain("fourth", graph.FindNode("relu"), context()) ==
        "there is no rule 'fourth'");
  CHECK(Run(several) == "1");
  CHECK(graph.FindNode("relu").GetAttr<std::string>("name").value() ==
        "second");
}

TEST_CASE_FIXTURE(Fixture, "a rule's result is matched by the next rule") {
  FuseMatMul fuse;
  std::vector<Rule> rules;
  const Pattern y = Any();
  rules.push_back(
      Rule("negate", Match<ops::InternalFusedMatMul>(y, Any(), Any()))
          .ReplaceBy(New<ops::Neg>(y).Set(ops::Neg::T_attr, DataType::kFloat)));
  rules.push_back(fuse.MakeRule("fuse", fuse.activation));
  CHECK(Run(Rules(std::move(rules))) == "2");
  CHECK(Compare("relu = Neg(x)") == "");
}

}  // namespace
}  // namespace tfplug::rules_test
