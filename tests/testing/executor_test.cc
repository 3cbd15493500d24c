// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>
#include <doctest/doctest.h>
#include <tfplug/testing.h>
#include <tfplug/testing/executor.h>
#include <tfplug/testing/graph_text.h>
#include <tfplug/testing/process.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "float_tensors.h"
#include "op_defs.h"

// Runs graphs on cpu_sim, whose .so is at $TFPLUG_TEST_PLUGIN. Its streams are
// threads, and host accesses to its memory crash.
namespace tfplug::executor_test {
namespace {

using testing::Executor;
using testing::Process;
using testing::TF_Tensor;

// One process for all cases, because a plug-in is loaded once.
Process& TheProcess() {
  static Process* const process = [] {
    testing::MakeFakeTensorFlow();  // sets the result of TF_Version
    DefineMathOps();
    DefineOp("Identity", {"input: T"}, {"output: T"});
    DefineOp("Shape", {"input: T"}, {"output: out_type"},
             {"T: type", "out_type: {int32, int64} = DT_INT32"});
    DefineOp("Reshape", {"tensor: T", "shape: Tshape"}, {"output: T"},
             {"T: type", "Tshape: {int32, int64} = DT_INT32"});
    DefineOp("Squeeze", {"input: T"}, {"output: T"},
             {"T: type", "squeeze_dims: list(int) >= 0 = []"});
    DefineOp("ExpandDims", {"input: T", "dim: Tdim"}, {"output: T"},
             {"T: type", "Tdim: {int32, int64} = DT_INT32"});
    auto* const created = new Process;
    const char* const path = std::getenv("TFPLUG_TEST_PLUGIN");
    REQUIRE(path != nullptr);
    const absl::Status status = created->Load(path);
    REQUIRE_MESSAGE(status.ok(), status.ToString());
    return created;
  }();
  return *process;
}

// Builds a graph; nodes have T=float and are on SIM:0 if their line names no
// device.
Graph MakeGraph(const std::string& text,
                testing::TF_GrapplerItem* item = nullptr) {
  Graph graph;
  testing::GraphTextOptions options;
  options.device = "SIM";
  options.attrs = "T=float";
  options.item = item;
  const auto last = testing::AddNodes(graph, text, options);
  REQUIRE_MESSAGE(last.ok(), last.status().ToString());
  return graph;
}
std::unique_ptr<Executor> MakeExecutor(const Graph& graph,
                                       const Executor::Options& options = {}) {
  auto executor = Executor::Create(TheProcess(), graph, options);
  REQUIRE_MESSAGE(executor.ok(), executor.status().ToString());
  return *std::move(executor);
}
std::vector<float> RunOne(Executor& executor, const Executor::Feeds& feeds,
                          const std::string& fetch) {
  auto values = executor.Run(feeds, {fetch});
  REQUIRE_MESSAGE(values.ok(), values.status().ToString());
  return Elements((*values)[0]);
}

TEST_CASE("constants, arguments in host memory, and devices by name") {
  const auto executor = MakeExecutor(MakeGraph(R"(
      x = Placeholder()
      two: float = 2
      axes: int32[1] = [1]
      double = Mul(x, two)
      moved = Neg(double) @/device:SIM:1
      sum = Sum(moved, axes))"));
  CHECK(executor->PlaceOf("double") == "SIM:0");
  CHECK(executor->PlaceOf("moved") == "SIM:1");
  CHECK(executor->PlaceOf("x") == "host");
  const TF_Tensor x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(RunOne(*executor, {{"x", x}}, "sum") == std::vector<float>{-12, -30});
  // Any output can be fed.
  CHECK(RunOne(*executor, {{"double", x}}, "sum") ==
        std::vector<float>{-6, -15});
  CHECK(TheProcess().Problems() == absl::OkStatus());
}

TEST_CASE("a placeholder that is fed has no control outputs") {
  // Nothing uses x's value.
  const auto executor = MakeExecutor(MakeGraph(R"(
      x, y = Placeholder()
      sum = AddV2(y, y, ^x))"));
  CHECK(RunOne(*executor, {{"x", Floats({1}, {1})}, {"y", Floats({1}, {2})}},
               "sum") == std::vector<float>{4});
}

TEST_CASE("a device without an index, or with any, is the first of its type") {
  for (const std::string device :
       {"/device:SIM", "/device:SIM:*", "/job:localhost/device:SIM:0/task:0"}) {
    CAPTURE(device);
    const auto executor =
        MakeExecutor(MakeGraph("x = Placeholder()\ny = Neg(x) @" + device));
    CHECK(executor->PlaceOf("y") == "SIM:0");
  }
  for (const std::string device : {"SIM", "SIM:*", "SIM:1", "/device:SIM:1"}) {
    CAPTURE(device);
    Executor::Options options;
    options.device = device;
    const auto executor =
        MakeExecutor(MakeGraph("x = Placeholder()\ny = Neg(x) @"), options);
    CHECK(executor->PlaceOf("y") == (device.back() == '1' ? "SIM:1" : "SIM:0"));
  }
}

TEST_CASE("a wide graph on many threads, in any order of ready nodes") {
  std::string text = "x = Placeholder()\nsum0 = Identity(x)\n";
  for (int i = 1; i <= 60; ++i) {
    // Some wait for nodes whose value they do not use.
    const std::string control =
        i > 10 ? ", ^r" + std::to_string(i - 10) : std::string();
    absl::StrAppend(&text, "r", i, " = Relu(x", control,
                    ") @/device:SIM:", i % 2, "\n", "sum", i, " = AddV2(sum",
                    i - 1, ", r", i, ") @/device:SIM:", i / 7 % 2, "\n");
  }
  const Graph graph = MakeGraph(text);
  const std::vector<float> in(1000, 1);
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Executor::Options options;
    options.seed = seed;
    options.threads = static_cast<int>(seed);
    const auto executor = MakeExecutor(graph, options);
    CHECK(RunOne(*executor, {{"x", Floats({1000}, in)}}, "sum60") ==
          std::vector<float>(1000, 61));
  }
}

TEST_CASE("errors name the node and the remedy") {
  const auto error = [](const std::string& text, const std::string& fetch) {
    auto executor = Executor::Create(TheProcess(), MakeGraph(text), {});
    if (!executor.ok()) return executor.status().ToString();
    return (*executor)->Run({}, {fetch}).status().ToString();
  };
  CHECK(error("x = Placeholder()", "x")
            .find("node 'x' (Placeholder) needs a "
                  "value: feed it") != std::string::npos);
  CHECK(error("x = Unheard()", "x").find("add its definition to KnownOpDefs") !=
        std::string::npos);
  CHECK(error("x = Placeholder()\ny = Relu(x) {T=string}", "y")
            .find("node 'y' (Relu): no plug-in has a kernel for it on SIM") !=
        std::string::npos);
  CHECK(error("x: float[2] = 1\ny = Relu(x) @/device:SIM:7", "y")
            .find("there is no device SIM:7") != std::string::npos);
  CHECK(
      error("x: float[2] = 1\ny = Relu(x) @/device:SIM:one", "y") ==
      "INVALID_ARGUMENT: node 'y' (Relu): its device '/device:SIM:one' has no "
      "index; write /device:TYPE:0");
  CHECK(error("x: float = 1", "x:1").find("'x:1' is not an output") !=
        std::string::npos);
  CHECK(error("x: float = 1", "z").find("the graph has no node for 'z'") !=
        std::string::npos);
  CHECK(error("x: float[2,3] = 1\ny = MatMul(x, x)", "y")
            .find("INVALID_ARGUMENT") == 0);
  CHECK(error("a = Relu(b)\nb = Relu(a)", "b").find("loop") !=
        std::string::npos);
}

TEST_CASE("ops of shapes need no kernel") {
  const auto executor = MakeExecutor(MakeGraph(R"(
      x = Placeholder()
      wanted: int32[3] = [-1, 1, 2]
      minus: int32 = -1
      negative = Neg(x)
      reshaped = Reshape(negative, wanted)
      shape = Shape(reshaped) {out_type=int64}
      squeezed = Squeeze(reshaped) {squeeze_dims=[1]}
      expanded = ExpandDims(squeezed, minus)
      none = Squeeze(reshaped) {squeeze_dims=[0]})"));
  const Executor::Feeds feeds = {{"x", Floats({6}, {1, 2, 3, 4, 5, 6})}};
  const auto values =
      executor->Run(feeds, {"reshaped", "shape", "squeezed", "expanded"});
  REQUIRE_MESSAGE(values.ok(), values.status().ToString());
  using Dims = std::vector<int64_t>;
  CHECK((*values)[0].dims == Dims{3, 1, 2});
  CHECK(testing::ReadTensor<int64_t>(nullptr, (*values)[1])->elements ==
        Dims{3, 1, 2});
  CHECK((*values)[2].dims == Dims{3, 2});
  CHECK((*values)[3].dims == Dims{3, 2, 1});
  CHECK(Elements((*values)[3]) == std::vector<float>{-1, -2, -3, -4, -5, -6});
  const absl::Status bad =
      executor->Run({{"x", Floats({5}, {1, 2, 3, 4, 5})}}, {"reshaped"})
          .status();
  CHECK(bad.message() ==
        "node 'reshaped' (Reshape): a tensor of 5 elements cannot have the "
        "requested shape");
  CHECK(absl::IsInvalidArgument(executor->Run(feeds, {"none"}).status()));
}

TEST_CASE("the passes of a plug-in keep the results of a graph") {
  testing::TF_GrapplerItem item;
  item.nodes_to_preserve = item.fetch_nodes = {"out"};
  Graph graph = MakeGraph(R"(
      x: float[4,8] = Placeholder() {dtype=float}
      w: float[8,3] = Placeholder() {dtype=float}
      b: float[3] = Placeholder() {dtype=float}
      product: float[4,3] = MatMul(x, w)
      biased: float[4,3] = BiasAdd(product, b) {data_format="NHWC"}
      active: float[4,3] = Relu(biased)
      square: float[4,3] = Mul(active, active)
      negative: float[4,3] = Neg(square)
      out: float[4,3] = AddV2(negative, biased))",
                          &item);
  auto outcome = TheProcess().Optimize("SIM", graph.ToString(), item);
  REQUIRE_MESSAGE(outcome.ok(), outcome.status().ToString());
  CHECK(outcome->changed);
  const auto optimized = Graph::Parse(outcome->graph);
  REQUIRE(optimized.ok());
  CHECK(optimized->num_nodes() < graph.num_nodes());

  std::vector<float> x(32), w(24), b = {0.5, -1, 2};
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 5) - 2;
  const Executor::Feeds feeds = {{"x", Floats({4, 8}, x)},
                                 {"w", Floats({8, 3}, w)},
                                 {"b", Floats({3}, b)}};
  const auto before = RunOne(*MakeExecutor(graph), feeds, "out");
  const auto after = RunOne(*MakeExecutor(*optimized), feeds, "out");
  REQUIRE(after.size() == before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    CHECK(after[i] == doctest::Approx(before[i]));
  }
}

}  // namespace
}  // namespace tfplug::executor_test
