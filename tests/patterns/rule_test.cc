// SPDX-License-Identifier: Apache-2.0
#include <tfplug/kernel/kernel.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/all.h>
#include <tfplug/patterns/rule.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "capture_stderr.h"
#include "patterns/rules_fixture.h"

// Tests the parts of replacements: new nodes, constants, attributes.
namespace tfplug::rule_test {
namespace {

class NoKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext&) override { return absl::OkStatus(); }
};
TFPLUG_REGISTER_KERNEL(NoKernel, ops::Neg().T<float>().Device("SIM"));

struct Fixture : RulesFixture {
  Fixture() {
    Add(R"(x = Placeholder()
           relu = Relu(x))");
  }
  const Pattern x = Any();
  const NodePattern<ops::Relu> relu = Match<ops::Relu>(x);
};

TEST_CASE_FIXTURE(Fixture, "new nodes within new nodes, and constants") {
  const auto two = NewConst([](const Matched&) {
    return Constant::Of(Shape{}, std::vector<float>{2});
  });
  const auto neg = New<ops::Neg>(x).Copy(relu, ops::Neg::T_attr);
  const Rules rules = MakeRules(
      Rule("nest", relu)
          .ReplaceBy(New<ops::AddV2>(neg, two).Copy(relu, ops::AddV2::T_attr)));
  Add("relu/Neg = Placeholder()");
  CHECK(Run(rules) == "1");
  CHECK(Compare(R"(relu = AddV2(relu/Neg_1, relu/Const)
                   relu/Neg_1 = Neg(x))") == "");
  const Node constant = graph.FindNode("relu/Const");
  CHECK(constant.device() == device);
  CHECK(constant.GetAttr<DataType>("dtype").value() == DataType::kFloat);
  CHECK(Constant::Read(constant)->GetElements<float>().value() ==
        std::vector<float>{2});
  CHECK(graph.FindNode("relu/Neg_1").device() == device);
  CHECK(graph.FindNode("relu/Neg_1").GetAttr<DataType>("T").ok());
}

TEST_CASE_FIXTURE(RulesFixture, "a constant computed from a matched constant") {
  const auto c = Match<ops::Const>().MayHaveOtherUses();
  const Pattern x = Any();
  const auto root = Match<ops::Mul>(x, c);
  const auto negative =
      NewConst([c](const Matched& m) -> absl::StatusOr<Constant> {
        TFPLUG_ASSIGN_OR_RETURN(const Constant old, Constant::Read(m.node(c)));
        TFPLUG_ASSIGN_OR_RETURN(std::vector<float> values,
                                old.GetElements<float>());
        for (float& value : values) value = -value;
        return Constant::Of(old.shape(), values);
      });
  const Rules rules = MakeRules(
      Rule("subtract", root)
          .ReplaceBy(
              New<ops::AddV2>(x, negative).Copy(root, ops::AddV2::T_attr)));
  Add(R"(x = Placeholder()
         in_loop = NoOp())");
  Add(R"(c: float[2] = [1, 2] (^in_loop)
         mul = Mul(x, c))");
  SUBCASE("with readable elements") {
    SUBCASE("used once") {}
    SUBCASE("used elsewhere too") { Add("other = Neg(c)"); }
    CHECK(Run(rules) == "1");
    // The control input makes it a part of the loop's body.
    CHECK(Compare("mul/Const: float[2] = [-1, -2] (^in_loop)\n...") == "");
    CHECK(static_cast<bool>(graph.FindNode("c")) ==
          static_cast<bool>(graph.FindNode("other")));
  }
  SUBCASE("without readable elements") {
    (*this)["c"].SetRawAttr("value", "");
    CHECK(
        Explain(rules, "mul") ==
        "subtract: node 'c' (Const): its attribute 'value' is not a tensor\n");
    CHECK(Run(rules) == "0");
    CHECK(graph.FindNode("mul").op() == "Mul");
  }
}

TEST_CASE_FIXTURE(Fixture, "a rule that requires a kernel") {
  const Rules rules = MakeRules(
      Rule("negate", relu)
          .ReplaceBy(
              New<ops::Neg>(x).Copy(relu, ops::Neg::T_attr).RequireKernel()));
  (*this)["relu"].SetAttr("T", DataType::kHalf);
  CHECK(Explain(rules, "relu") ==
        "negate: no kernel is registered for Neg with T=half on SIM\n");
  CHECK(Run(rules) == "0");
  (*this)["relu"].SetAttr("T", DataType::kFloat);
  (*this)["relu"].SetDevice("");
  CHECK(Explain(rules, "relu") ==
        "negate: 'relu' (Relu) has no device yet, so its kernel cannot be "
        "determined\n");
  (*this)["relu"].SetDevice(device);
  CHECK(Run(rules) == "1");
}
TEST_CASE_FIXTURE(Fixture,
                  "a required kernel for a type that is set, not copied") {
  const auto negate = [&](DataType type) {
    return MakeRules(
        Rule("negate", relu)
            .ReplaceBy(
                New<ops::Neg>(x).Set(ops::Neg::T_attr, type).RequireKernel()));
  };
  CHECK(Run(negate(DataType::kDouble)) == "0");
  CHECK(Run(negate(DataType::kFloat)) == "1");
}

TEST_CASE_FIXTURE(Fixture, "an op that TensorFlow does not have") {
  const Rules cosine =
      MakeRules(Rule("cosine", relu).ReplaceBy(New<ops::Cos>(x)));
  CHECK(Explain(cosine, "relu") ==
        "cosine: TensorFlow cannot look up op Cos: unknown op\n");
  setenv("TFPLUG_LOG_FUSION", "1", 1);
  CHECK(
      CaptureStderr([&] { Explain(cosine, "relu"); }) ==
      "tfplug: no rule creates Cos: TensorFlow cannot look up op Cos: unknown "
      "op\n");
  unsetenv("TFPLUG_LOG_FUSION");
  CHECK(Run(cosine) == "0");
}
TEST_CASE_FIXTURE(Fixture, "what rules replace is logged") {
  Add("sin = Sin(relu)");
  for (const char* op : {"Neg", "Relu", "Sin"}) DefineOp(op, {"T: type"});
  std::vector<Rule> rules = {
      Rule("drop", Match<ops::Sin>(x)).ReplaceBy(x),
      Rule("negate", relu)
          .ReplaceBy(New<ops::Neg>(x).Set(ops::Neg::T_attr, DataType::kFloat))};
  setenv("TFPLUG_LOG_FUSION", "1", 1);
  CHECK(CaptureStderr([&] { CHECK(Run(Rules(std::move(rules))) == "2"); }) ==
        "tfplug: rule 'drop' replaced 'sin' (Sin) by a value that it matched\n"
        "tfplug: rule 'negate' replaced 'relu' (Relu) by Neg\n");
  unsetenv("TFPLUG_LOG_FUSION");
}
TEST_CASE_FIXTURE(Fixture, "a pattern with an op that TensorFlow lacks") {
  const Rules misspelt =
      MakeRules(Rule("misspelt", Match("Rellu", x)).ReplaceBy(x));
  setenv("TFPLUG_LOG_FUSION", "1", 1);
  const auto run = [&] { CHECK(Run(misspelt) == "0"); };
  CHECK(CaptureStderr(run) == "tfplug: no rule finds Rellu: unknown op\n");
  CHECK(CaptureStderr(run) == "");
  unsetenv("TFPLUG_LOG_FUSION");
}
TEST_CASE_FIXTURE(Fixture, "an attribute that TensorFlow's op requires") {
  const Rules cosine =
      MakeRules(Rule("cosine", relu).ReplaceBy(New<ops::Cos>(x)));
  DefineOp("Cos", {"T: type", "fast: bool"});
  CHECK(Explain(cosine, "relu") ==
        "cosine: this TensorFlow's Cos requires attribute T, which the rule "
        "does not set\n");
  CHECK(Run(cosine) == "0");
}
TEST_CASE_FIXTURE(Fixture, "attributes that some releases lack") {
  const auto cos = New<ops::Cos>(x).Copy(relu, ops::Cos::T_attr);
  SUBCASE("Set") {
    DefineOp("Cos", {"T: type"});
    const Rules rules =
        MakeRules(Rule("cosine", relu).ReplaceBy(cos.Set("n", true)));
    CHECK(Explain(rules, "relu") ==
          "cosine: this TensorFlow's Cos has no attribute n\n");
    CHECK(Run(rules) == "0");
  }
  SUBCASE("SetIfKnown, and the op lacks it") {
    DefineOp("Cos", {"T: type"});
    CHECK(Run(MakeRules(
              Rule("cosine", relu).ReplaceBy(cos.SetIfKnown("n", true)))) ==
          "1");
    CHECK_FALSE(graph.FindNode("relu").HasAttr("n"));
  }
  SUBCASE("SetIfKnown, and the op has it") {
    DefineOp("Cos", {"T: type", "n: bool"});
    CHECK(Run(MakeRules(
              Rule("cosine", relu).ReplaceBy(cos.SetIfKnown("n", true)))) ==
          "1");
    CHECK(graph.FindNode("relu").GetAttr<bool>("n").value());
  }
}

TEST_CASE_FIXTURE(Fixture, "attributes of all types") {
  DefineOp("Cos", {"T: type", "b: bool", "i: int", "f: float", "s: string",
                   "t: type", "h: shape", "bs: list(bool)", "is: list(int)",
                   "fs: list(float)", "ts: list(type)", "ss: list(string)"});
  CHECK(Run(MakeRules(
            Rule("all", relu)
                .ReplaceBy(New<ops::Cos>(x)
                               .Copy(relu, ops::Cos::T_attr)
                               .Set("b", true)
                               .Set("i", int64_t{-3})
                               .Set("f", 0.5f)
                               .Set("s", std::string("text"))
                               .Set("t", DataType::kHalf)
                               .Set("h", PartialShape(Shape{2, -1}))
                               .Set("bs", std::vector<bool>{true, false})
                               .Set("is", std::vector<int64_t>{1, -1})
                               .Set("fs", std::vector<float>{0.25f})
                               .Set("ts", std::vector<DataType>{})
                               .Set("ss", std::vector<std::string>{"a"})))) ==
        "1");
  const Node node = graph.FindNode("relu");
  CHECK(node.GetAttr<bool>("b").value());
  CHECK(node.GetAttr<int64_t>("i").value() == -3);
  CHECK(node.GetAttr<float>("f").value() == 0.5f);
  CHECK(node.GetAttr<std::string>("s").value() == "text");
  CHECK(node.GetAttr<DataType>("t").value() == DataType::kHalf);
  CHECK(node.GetAttr<PartialShape>("h")->ToString() == "[2,?]");
  CHECK(node.GetAttr<std::vector<bool>>("bs").value() ==
        std::vector<bool>{true, false});
  CHECK(node.GetAttr<std::vector<int64_t>>("is").value() ==
        std::vector<int64_t>{1, -1});
  CHECK(node.GetAttr<std::vector<float>>("fs").value() ==
        std::vector<float>{0.25f});
  CHECK(node.GetAttr<std::vector<DataType>>("ts")->empty());
  CHECK(node.GetAttr<std::vector<std::string>>("ss").value() ==
        std::vector<std::string>{"a"});
}

TEST_CASE_FIXTURE(Fixture, "a replacement that uses a node that it removes") {
  const auto inner = Match<ops::Relu>(x);
  const Rules rules = MakeRules(
      Rule("wrong", Match<ops::Sqrt>(inner))
          .ReplaceBy(New<ops::Neg>(inner).Copy(inner, ops::Neg::T_attr)));
  Add("sqrt = Sqrt(relu)");
  CHECK(Run(rules) ==
        "rule 'wrong', node 'sqrt': the replacement still uses 'relu', which "
        "the rule removes; mark it MayHaveOtherUses(), or use its inputs");
}

TEST_CASE_FIXTURE(RulesFixture,
                  "inputs that are not part of the match are left out") {
  DefineOp("MyOp", {"T: type"});
  const Pattern x = Any(), b = Any();
  const auto bias = Match<ops::BiasAdd>(x, b);
  const auto root = Match<ops::Relu>(Optional(bias));
  const Rules rules =
      MakeRules(Rule("fuse", root)
                    .ReplaceBy(New<ops::InternalFusedMatMul>(x, x, b)
                                   .Copy(root, ops::InternalFusedMatMul::T_attr)
                                   .Set(ops::InternalFusedMatMul::num_args,
                                        [=](const Matched& m) {
                                          return m.has(b) ? 1 : 0;
                                        })
                                   .Set(ops::InternalFusedMatMul::fused_ops,
                                        std::vector<std::string>{"Relu"})));
  Add(R"(x, b = Placeholder()
         bias = BiasAdd(x, b)
         relu1 = Relu(bias)
         relu2 = Relu(x))");
  CHECK(Run(rules) == "2");
  CHECK(Compare(R"(relu1 = _FusedMatMul(x, x, b) {num_args=1}
                   relu2 = _FusedMatMul(x, x) {num_args=0})") == "");
}

}  // namespace
}  // namespace tfplug::rule_test
