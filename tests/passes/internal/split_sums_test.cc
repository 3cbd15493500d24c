// SPDX-License-Identifier: Apache-2.0
#include "tfplug/passes/internal/split_sums.h"

#include <doctest/doctest.h>

#include <string>

#include "patterns/rules_fixture.h"

namespace tfplug::split_sums_test {
namespace {

// The sum x + y:1 + z as TensorFlow splits it.
struct SplitSum : RulesFixture {
  SplitSum() {
    Add(R"(
        x, y, z, p, q = Placeholder()
        s/variable = TemporaryVariable(^p, ^y) {dtype=float,
                                                var_name="s/tmp_var"}
        s/zeros = ZerosLike(y:1)
        s/start = Assign(s/variable, s/zeros)
        s/add_0 = AssignAdd(s/start, x)
        s/add_1 = AssignAdd(s/start, y:1)
        s/add_2 = AssignAdd(s/start, z)
        s = DestroyTemporaryVariable(s/start, ^s/add_0, ^s/add_1, ^s/add_2,
                                     ^q) {var_name="s/tmp_var"}
        t = Neg(s))");
  }

  void Rejoin() {
    const auto status = passes_internal::SplitSums::Rejoin(graph, context());
    REQUIRE_MESSAGE(status.ok(), status.ToString());
    REQUIRE(graph.Check().ok());
    REQUIRE(graph.TopologicalOrder().ok());
  }
};

TEST_CASE("a sum that was split is an AddN again") {
  SplitSum split;
  split.Rejoin();
  CHECK(split.Compare(R"(s = AddN(x, y:1, z, ^q, ^p) {N=3, T=float, !var_name}
                         t = Neg(s))") == "");
  CHECK(!split.graph.FindNode("s/variable"));
}

TEST_CASE("a sum without a device, and one that is fetched") {
  SplitSum split;
  for (const Node node : split.graph.nodes()) node.SetDevice("");
  split.Preserve("s");
  split.Rejoin();
  CHECK(split.Compare(R"(s = AddN(x, y:1, z, ^q, ^p) @
                         t = Neg(s) @)") == "");
}

TEST_CASE("a first value that is not known to be zeros is added as well") {
  SplitSum split;
  REQUIRE(split["s/start"].SetInput(1, split["p"]).ok());
  split.Preserve("s/zeros");
  split.Rejoin();
  CHECK(split.Compare(R"(s = AddN(p, x, y:1, z, ^q)
                         s/zeros = ZerosLike(y:1)
                         t = Neg(s))") == "");
  SplitSum fed;
  fed.Preserve("s/zeros");
  fed.Rejoin();
  CHECK(fed.Compare(R"(s = AddN(s/zeros, x, y:1, z, ^q, ^p)
                       s/zeros = ZerosLike(y:1)
                       t = Neg(s))") == "");
}

TEST_CASE("anything else that touches the variable forbids it") {
  const auto stays = [](const char* what, auto edit) {
    SplitSum split;
    edit(split);
    const std::string before = split.Print();
    split.Rejoin();
    CHECK_MESSAGE(split.Print() == before, what);
  };
  stays("another device", [](SplitSum& s) {
    for (const Node node : s.graph.nodes()) node.SetDevice("/device:CPU:0");
  });
  stays("two devices",
        [](SplitSum& s) { s["s/add_1"].SetDevice("/device:CPU:0"); });
  stays("an update that is not awaited",
        [](SplitSum& s) { REQUIRE(s["s"].RemoveControl(s["s/add_1"]).ok()); });
  stays("an update whose value is read",
        [](SplitSum& s) { s.Add("u = Neg(s/add_1)"); });
  stays("an update that something else awaits",
        [](SplitSum& s) { s.Add("u = Neg(x, ^s/add_1)"); });
  stays("another op on the variable",
        [](SplitSum& s) { s.Add("u = Neg(s/variable)"); });
  stays("another op on its first value",
        [](SplitSum& s) { s.Add("u = Neg(s/start)"); });
  stays("an op that awaits the first value",
        [](SplitSum& s) { s.Add("u = Neg(x, ^s/start)"); });
  stays("another update", [](SplitSum& s) { s["s/add_1"].SetOp("AssignSub"); });
  stays("another variable",
        [](SplitSum& s) { s["s"].SetAttr("var_name", "other"); });
  stays("another type",
        [](SplitSum& s) { s["s/add_1"].SetAttr("T", DataType::kHalf); });
  for (const char* name : {"s/variable", "s/start", "s/add_1"}) {
    stays("a preserved node", [&](SplitSum& s) { s.Preserve(name); });
  }
}

}  // namespace
}  // namespace tfplug::split_sums_test
