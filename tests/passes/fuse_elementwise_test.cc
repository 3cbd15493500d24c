// SPDX-License-Identifier: Apache-2.0
#include "tfplug/passes/fuse_elementwise.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "capture_stderr.h"
#include "fusion_graph.h"
#include "tfplug/passes/default_passes.h"

namespace tfplug::fuse_elementwise_test {
namespace {

TEST_CASE("a chain becomes one op, whose result is the same") {
  Fusion f;
  f.Feed("x", {2, 2}, {-1, 0, 1, 2});
  f.Feed("row", {2}, {3, 4});
  f.Scalar("half", 0.5);
  f.Add("mul", "Mul", {"x", "half"});
  f.Add("sum", "AddV2", {"mul", "row"});
  f.Add("leaky", "LeakyRelu", {"sum"}).SetAttr("alpha", 0.25f);
  f.Add("out", "Identity", {"leaky"});
  const std::string expected = f.Result("out");
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity ", kFusedMapOp));
  CHECK(absl::StartsWith(
      f.ExpressionOf("leaky/fused"),
      "float float;input:float 0;input:float 1;"
      "constant:float 4602678819172646912;mul:float 0 2;add:float 3 1;"));
  num_maps = 0;
  CHECK(f.Result("out") == expected);
  CHECK(num_maps == 1);
  f.Fuse();  // nothing is left to do
  CHECK(f.Ops() == absl::StrCat("Identity ", kFusedMapOp));
}

TEST_CASE("the first formula of an op counts, as for its kernel") {
  Fusion f;
  f.Feed("x", {2}, {1, 2});
  f.Add("neg", "Neg", {"x"});
  f.Add("exp", "Exp", {"neg"});
  f.Add("out", "Identity", {"exp"});
  const std::string expected = f.Result("out");
  ir::FusableOp second = ir::FusableOps().front();
  for (const ir::FusableOp& row : ir::FusableOps()) {
    if (absl::string_view(row.op.name) == "Exp") second = row;
  }
  second.op.name = "Neg";
  ir::FusableOps().push_back(second);
  f.Fuse();
  ir::FusableOps().pop_back();
  CHECK(absl::StrContains(f.ExpressionOf("exp/fused"), ";neg:float 0;exp:"));
  CHECK(f.Result("out") == expected);
}

TEST_CASE("a constant that may be fed stays an input") {
  for (const bool is_fetched : {true, false}) {
    Fusion f;
    f.Feed("x", {2}, {1, 2});
    f.Scalar("half", 0.5);
    f.Add("mul", "Mul", {"x", "half"});
    f.Add("neg", "Neg", {"mul"});
    f.Add("out", "Identity", {"neg"});
    f.item.nodes_to_preserve = {"half"};
    if (is_fetched) f.item.fetch_nodes = {"half:0"};
    f.Fuse();
    CHECK(f["neg/fused"].num_inputs() == (is_fetched ? 1 : 2));
  }
}

TEST_CASE("a value with other uses becomes an output") {
  Fusion f;
  f.Feed("x", {3}, {-1, 0, 1});
  f.Add("tanh", "Tanh", {"x"});
  f.Add("exp", "Exp", {"tanh"});
  f.Add("out1", "Identity", {"tanh"});
  f.Add("out2", "Identity", {"exp"});
  const std::string tanh = f.Result("out1"), exp = f.Result("out2");
  f.Fuse();
  CHECK(f["out1"].input(0) == Output(f["exp/fused"], 0));
  CHECK(f["out2"].input(0) == Output(f["exp/fused"], 1));
  num_maps = 0;
  CHECK(f.Result("out1") == tanh);
  CHECK(f.Result("out2") == exp);
  CHECK(num_maps == 1);
}

TEST_CASE("no cycle is created") {
  Fusion f;
  f.Feed("x", {2}, {1, 2});
  f.Add("a", "Tanh", {"x"});
  f.Add("other", "Identity", {"a"});
  f.Add("b", "Exp", {"a"});
  f.Add("c", "Mul", {"b", "other"});
  f.Add("d", "Neg", {"c"});
  f.Add("out", "Identity", {"d"});
  const std::string expected = f.Result("out");
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity Identity Tanh ", kFusedMapOp));
  CHECK(f.Result("out") == expected);
}

TEST_CASE("control edges are kept") {
  Fusion f;
  f.Feed("x", {2}, {1, 2});
  f.Feed("before", {}, {0});
  f.Feed("scalar_before", {}, {0});
  REQUIRE(f.Scalar("two", 2).AddControl(f["scalar_before"]).ok());
  f.Add("a", "Tanh", {"x", "^before"});
  f.Add("b", "Mul", {"a", "two"});
  f.Add("out", "Identity", {"b"});
  f.Add("after", "Identity", {"x", "^a"});
  f.Fuse();
  const Node fused = f["b/fused"];
  REQUIRE(fused);
  CHECK(fused.num_controls() == 2);
  CHECK(f["after"].control(0) == fused);
}

TEST_CASE("a value that only a control edge uses") {
  Fusion f;
  f.Feed("c", {1, 3}, {5, 6, 7});
  f.Feed("a", {3}, {-1, 0, 1});
  f.Feed("b", {3}, {1, 2, 3});
  f.Add("used", "AddV2", {"a", "b"});
  std::vector<std::string> inputs = {"used", "c"};
  SUBCASE("with an input of its own after the others") {}
  SUBCASE("with an input of its own before the others") {
    std::swap(inputs[0], inputs[1]);
  }
  f.Add("unused", "Mul", inputs);
  f.Add("out", "Identity", {"used"});
  f.Add("after", "Identity", {"a", "^unused"});
  const std::string expected = f.Result("out");
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity Identity ", kFusedMapOp));
  CHECK(f.Result("out") == expected);
}

TEST_CASE("a control edge between two ops keeps them apart") {
  Fusion f;
  f.Feed("x", {2}, {1, 2});
  f.Add("a", "Tanh", {"x"});
  f.Add("b", "Exp", {"a", "^a"});
  f.Add("out", "Identity", {"b"});
  f.Fuse();
  CHECK(f.Ops() == "Exp Identity Tanh");
}

TEST_CASE("some ops are left out") {
  Fusion f;
  f.Feed("x", {2}, {1, 2});
  SUBCASE("on another device") {
    f.Add("a", "Tanh", {"x"}).SetDevice(kCpu);
    f.Add("b", "Exp", {"a"});
  }
  SUBCASE("without a device, as in a function's body") {
    f.Add("a", "Tanh", {"x"}).SetDevice("");
    f.Add("b", "Exp", {"a"});
  }
  SUBCASE("with a kernel of the author") {
    f.Add("a", "Tanh", {"x"});
    f.Add("b", "Elu", {"a"});
  }
  SUBCASE("with the label of a kernel") {
    f.Add("a", "Tanh", {"x"}).SetAttr("_kernel", "label");
    f.Add("b", "Exp", {"a"});
  }
  SUBCASE("on the host") {
    f.Add("a", "Neg", {"x"}, DataType::kInt32);
    f.Add("b", "Abs", {"a"}, DataType::kInt32);
  }
  SUBCASE("preserved") {
    f.Add("a", "Tanh", {"x"});
    f.Add("b", "Exp", {"a"});
    f.item.nodes_to_preserve = {"a"};
  }
  SUBCASE("with a result for shapes that do not fit") {
    f.Add("a", "Tanh", {"x"});
    f.Add("b", "Equal", {"a", "x"}).SetAttr("incompatible_shape_error", false);
  }
  SUBCASE("that nothing uses") {
    f.Add("a", "Tanh", {"x"});
    f.Add("b", "Exp", {"a"});
    f.Add("out", "Identity", {"x"});
    f.Fuse();
    CHECK(f.Ops() == "Exp Identity Tanh");
    return;
  }
  f.Add("out", "Identity", {"b"});
  f.Fuse();
  CHECK(!absl::StrContains(f.Ops(), kFusedMapOp));
}

TEST_CASE("branches and loops") {
  Fusion f;
  f.Feed("x", {2}, {1, 2});
  f.Feed<bool>("p", {}, {true});
  f.Add("a", "Tanh", {"x"});
  f.Add("switch1", "Switch", {"a", "p"});
  f.Add("switch2", "Switch", {"x", "p"});
  SUBCASE("one branch") {
    f.Add("b", "Exp", {"switch1:1"});
    f.Add("c", "Mul", {"b", "switch2:1"});
    f.Add("out1", "Identity", {"b"});
    f.Add("out2", "Identity", {"c"});
    f.Fuse();
    CHECK(f["c/fused"]);
  }
  SUBCASE("a node outside of the branch") {
    SUBCASE("of a value") {}
    SUBCASE("of a reference") { f["switch2"].SetOp("RefSwitch"); }
    f.Add("late", "Identity", {"a"});
    f.Add("later", "Identity", {"late"});
    f.Add("b", "Exp", {"later"});
    f.Add("c", "Mul", {"b", "switch2:1"});
    f.Add("out1", "Identity", {"b"});  // also where c does not run
    f.Add("out2", "Identity", {"c"});
    f.Fuse();
    CHECK(f["b"]);
    CHECK(f["c"]);
  }
  SUBCASE("after both branches") {
    f.Add("b", "Exp", {"switch1:0"});
    f.Add("c", "Neg", {"switch1:1"});
    f.Add("merge", "Merge", {"b", "c"});
    f.Add("d", "Tanh", {"merge"});
    f.Add("e", "Exp", {"x"});
    f.Add("sum", "AddV2", {"d", "e"});
    f.Add("out1", "Identity", {"e"});
    f.Add("out2", "Identity", {"sum"});
    f.Fuse();
    CHECK(f["sum/fused"]);
    CHECK(f["b"]);
    CHECK(f["c"]);
  }
  SUBCASE("a loop") {
    f.Add("enter", "Enter", {"x"}).SetAttr("frame_name", "loop");
    f.Add("constant", "Enter", {"x"}).SetAttr("frame_name", "loop");
    f.Add("merge", "Merge", {"enter"});
    f.Add("limit", "LoopCond", {"merge"});
    f.Add("switch", "Switch", {"merge", "limit"});
    f.Add("b", "Exp", {"switch:1"});
    f.Add("c", "Mul", {"b", "constant"});
    f.Add("side", "Identity", {"b"});
    f.Add("next", "NextIteration", {"c"});
    REQUIRE(f["merge"].AddInput(f["next"]).ok());
    f.Add("exit", "Exit", {"switch:0"});
    f.Add("d", "Tanh", {"exit"});
    f.Add("e", "AddV2", {"d", "a"});
    f.Add("out1", "Identity", {"d"});
    f.Add("out2", "Identity", {"e"});
    f.Fuse();
    CHECK(f["c/fused"]);
    CHECK(f["e/fused"].num_inputs() == 2);
  }
}

TEST_CASE("a large cluster is divided") {
  Fusion f;
  f.Feed("x", {3}, {-1, 0, 1});
  std::string last = "x";
  for (int i = 0; i < 100; ++i) {
    const std::string name = absl::StrCat("n", i);
    f.Feed("y" + name, {3}, {1, 2, 3});
    f.Add(name, i % 2 == 0 ? "AddV2" : "Mul", {last, "y" + name});
    last = name;
  }
  f.Add("out", "Identity", {last});
  const std::string expected = f.Result("out");
  f.Fuse();
  CHECK(f.graph.nodes(kFusedMapOp).begin() != nullptr);
  for (const Node node : f.graph.nodes(kFusedMapOp)) {
    CHECK(node.num_inputs() <= 16);
  }
  CHECK(f.Result("out") == expected);
}

TEST_CASE("errors name the shapes") {
  Fusion f;
  f.Feed("x", {3}, {-1, 0, 1});
  f.Feed("y", {2}, {1, 2});
  f.Add("a", "Tanh", {"x"});
  f.Add("b", "AddV2", {"a", "y"});
  f.Add("out", "Identity", {"b"});
  f.Fuse();
  CHECK(absl::StrContains(f.Result("out"), "Incompatible shapes: [3] vs. [2]"));
}

TEST_CASE("an op's constant has the shape of its input") {
  Fusion f;
  f.Feed("x", {3}, {-1, 0, 1});
  f.Feed("y", {2, 3}, {1, 2, 3, 4, 5, 6});
  std::string x = "x", y = "y";
  DataType type = DataType::kFloat;
  SUBCASE("of float") {}
  SUBCASE("of half") {
    type = DataType::kHalf;
    for (std::string* input : {&x, &y}) {
      f.Add(*input + "/half", "Cast", {*input}, type)
          .SetAttr("SrcT", DataType::kFloat);
      *input += "/half";
    }
  }
  f.Add("ones", "OnesLike", {y}, type);
  f.Add("sum", "AddV2", {x, "ones"}, type);
  f.Add("out1", "Identity", {"sum"}, type);
  f.Add("out2", "Identity", {"ones"}, type);
  const std::string sum = f.Result("out1"), ones = f.Result("out2");
  f.Fuse();
  CHECK(!f["ones"]);
  CHECK(f.Result("out1") == sum);
  CHECK(f.Result("out2") == ones);
}

TEST_CASE("ops check the shapes of their inputs") {
  Fusion f;
  f.Feed("x", {2, 3}, {-1, 0, 1, 2, 3, 4});
  f.Feed("row", {3}, {1, 2, 3});
  f.Feed("one", {1}, {1});
  f.Feed("scalar", {}, {1});
  f.Add("tanh", "Tanh", {"x"});
  std::string expected;
  SUBCASE("a bias for each column") {
    f.Add("last", "BiasAdd", {"tanh", "row"});
  }
  SUBCASE("a bias of one element") {
    f.Add("last", "BiasAdd", {"tanh", "one"});
    expected = "Must provide as many biases";
  }
  SUBCASE("a bias of a vector") {
    f.Add("exp", "Exp", {"row"});
    f.Add("last", "BiasAdd", {"exp", "row"});
    expected = "Must provide as many biases";
  }
  SUBCASE("a sum of tensors of one shape") {
    f.Add("last", "AddN", {"tanh", "x", "tanh"}).SetAttr("N", int64_t{3});
  }
  SUBCASE("a sum with a row") {
    f.Add("last", "AddN", {"tanh", "x", "row"}).SetAttr("N", int64_t{3});
    expected = "all inputs must have the same shape: [3] vs. [2,3]";
  }
  SUBCASE("scalar bounds") {
    f.Add("last", "ClipByValue", {"tanh", "scalar", "x"});
  }
  SUBCASE("a row of bounds") {
    f.Add("last", "ClipByValue", {"tanh", "row", "x"});
    expected = "all inputs must have the same shape: [3] vs. [2,3]";
  }
  f.Add("end", "Neg", {"last"});
  f.Add("out", "Identity", {"end"});
  const std::string before = expected.empty() ? f.Result("out") : "";
  f.Fuse();
  CHECK(f["end/fused"]);
  const std::string result = f.Result("out");
  if (expected.empty()) {
    CHECK(result == before);
  } else {
    CHECK_MESSAGE(absl::StrContains(result, expected), result);
  }
}

TEST_CASE("int32 values of the device are compared there") {
  Fusion f;
  f.Feed<int32_t>("bits", {3}, {-2147483647 - 1, 0, 5});
  f.Feed<bool>("zero", {3}, {true, true, false});
  const std::string constants = R"(
      mask: int32 = -8
      none: int32 = 0)";
  REQUIRE(testing::AddNodes(f.graph, constants, {kDevice, "", nullptr}).ok());
  f.Add("sign", "BitwiseAnd", {"bits", "mask"}, DataType::kInt32);
  std::string host = "none";
  SUBCASE("with a scalar") {}
  SUBCASE("but not with a vector") {
    host = "many";
    const std::string many = "many: int32[3] = 0";
    REQUIRE(testing::AddNodes(f.graph, many, {kDevice, "", nullptr}).ok());
  }
  SUBCASE("but not with a scalar that may be fed") {
    f.item.nodes_to_preserve = {"none"};
    host = "fed";
  }
  f.Add("less", "Less", {"sign", host == "many" ? "many" : "none"},
        DataType::kInt32);
  f.Add("and", "LogicalAnd", {"less", "zero"}).RemoveAttr("T");
  f.Add("out", "Identity", {"and"});
  f.Fuse();
  if (host != "none") {
    CHECK(f["less"]);
    return;
  }
  CHECK(f.Ops() == absl::StrCat("Identity ", kFusedMapOp));
  CHECK(f.Result("out") == std::string("3:\1\0\0", 5));
}

TEST_CASE("int32 values of the host are compared there") {
  Fusion f;
  f.Feed<bool>("yes", {}, {true});
  REQUIRE(
      testing::AddNodes(f.graph, "n: int32 = 3", {kDevice, "", nullptr}).ok());
  f.graph.AddNode("i", "_Arg").value().SetDevice(kDevice);
  f.Add("less", "Less", {"i", "n"}, DataType::kInt32);
  f.Add("and", "LogicalAnd", {"less", "yes"}).RemoveAttr("T");
  f.Add("not", "LogicalNot", {"and"}).RemoveAttr("T");
  f.Add("out", "Identity", {"not"});
  f.Fuse();
  CHECK(f["less"]);
  CHECK(f["not/fused"]);
}

TEST_CASE("decisions are logged") {
  Fusion f;
  f.Feed("x", {2, 2}, {1, 2, 3, 4});
  f.MatMul("product", {"x", "x"});
  f.Add("a", "Tanh", {"product"});
  f.Add("b", "Exp", {"a"});
  f.Add("between", "Elu", {"b"});
  f.Add("c", "Mul", {"b", "between"});
  f.Reduce("sum", "Sum", "c", {-1});
  f.MatMul("other", {"x", "x"});
  f.Add("d", "Neg", {"other"});
  f.Add("out", "Identity", {"other"});
  setenv("TFPLUG_LOG_FUSION", "1", 1);
  const std::string log = CaptureStderr([&] { f.Fuse(); });
  unsetenv("TFPLUG_LOG_FUSION");
  CHECK(log ==
        "tfplug: 'd' (Neg) is not fused with 'other' (MatMul): other nodes use "
        "it as well\n"
        "tfplug: 'c' (Mul) is not fused with 'b' (Exp): a node between them "
        "cannot be fused, or the cluster would have too many operands\n"
        "tfplug: fused 2 ops into 'b/fused' (1 inputs, 1 outputs): Tanh, Exp\n"
        "tfplug: fused a reduction (Sum) and the ops before it into "
        "'sum/fused'\n"
        "tfplug: fused 'product' (MatMul) and the ops after it into "
        "'b/fused/matmul'\n");
}

TEST_CASE("the pass is among the default passes") {
  const auto is_among_them = [] {
    std::vector<graph_internal::PassEntry> entries;
    passes_internal::AppendLastPasses("SIM", OptimizerSettings(), entries);
    return std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
      return absl::EndsWith(entry.name, "FuseElementwise");
    });
  };
  CHECK(is_among_them());
  setenv("TFPLUG_FUSION", "0", 1);
  CHECK_FALSE(is_among_them());
  unsetenv("TFPLUG_FUSION");
}

}  // namespace
}  // namespace tfplug::fuse_elementwise_test
