// SPDX-License-Identifier: Apache-2.0
#include "tfplug/op_kernels/region.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "region_graph.h"

// CompileRegions, and the kernel of the regions that it makes.
namespace tfplug::region_test {
namespace {

TEST_CASE(
    "a region runs its nodes, with axes and shapes, and has its results") {
  RegionGraph g;
  g.Feed(R"(x: float[2,3] = [1, -2, 3, -4, 5, -6]
            w: float[3,2] = [1, 2, 3, 4, 5, 6])");
  g.Add(R"(
      product = MatMul(x, w)
      sum = AddV2(product, product)
      axes: int32[1] = [1]
      rows = Sum(sum, axes)
      shape = Shape(product)
      perm: int32[2] = [1, 0]
      columns = Transpose(product, perm)
      again = Reshape(columns, shape)
      same = Identity(again)
      minus_one: int32 = -1
      wide = ExpandDims(rows, minus_one)
      flat = Squeeze(wide)
      out1 = Elu(rows)
      out2 = Elu(same)
      out3 = Elu(flat))");
  CHECK(g.CompileAndCompare() == 1);
  for (const Node node : g.graph.nodes()) {
    CHECK(node.op() != "MatMul");
    CHECK(node.op() != "Shape");
  }
}

TEST_CASE(
    "nodes that must stay, or have another kind of kernel, are left out") {
  RegionGraph g;
  Describe("Random", "x:T", "y:T", /*is_stateful=*/true);
  g.item.nodes_to_preserve = {"kept"};
  g.Add(R"(
      x = Placeholder()
      kept = Tanh(x)
      own = Elu(x)
      random = Random(x)
      labelled = Tanh(x) {_kernel="fast"}
      elsewhere = Tanh(x) @CPU
      unknown = Mystery(x)
      copied, copied2 = TfplugToDeviceV1(x)
      a = Tanh(x)
      b = Neg(x)
      out = Elu(a)
      out2 = Elu(b))");
  CHECK(g.Compile() == 1);
  for (const char* name : {"kept", "own", "random", "labelled", "elsewhere",
                           "unknown", "copied"}) {
    CHECK_MESSAGE(g[name], name);
  }
  CHECK_FALSE(g["a"]);
  CHECK_FALSE(g["b"]);
}

TEST_CASE("an author's kernel that uses the launcher is repeated") {
  RegionGraph g;
  g.Feed("x: float[2] = [6, -8]");
  g.Add(R"(
      a = Neg(x)
      own = Softsign(a)
      b = Neg(own)
      out = Elu(b))");
  CHECK(g.Compile() == 1);
  CHECK_FALSE(g["own"]);
  OwnKernel::enqueued = 0;
  for (int run = 1; run <= 3; ++run) {
    // Other memory, and other values.
    g.Feed(absl::StrCat("x: float[2] = [", 2 * run, ", -8]"));
    g.Feed(absl::StrCat("expected: float[2] = [", run, ", -4]"));
    CHECK(g.Result("out") == g.Result("expected"));
    CHECK(OwnKernel::enqueued == run);
  }
}

// Returns the decisions about regions that act() logs.
template <class Act>
std::string LoggedBy(const Act& act) {
  char path[] = "/tmp/tfplug_regions_XXXXXX";
  ::close(::mkstemp(path));
  ::setenv("TFPLUG_LOG_REGIONS", path, 1);
  act();
  ::unsetenv("TFPLUG_LOG_REGIONS");
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  ::unlink(path);
  return text.str();
}

TEST_CASE("decisions are logged in a file") {
  RegionGraph g;
  g.Feed("x: float[2] = [6, -8]");
  g.Feed("half: float = 0.5");  // nothing is behind it in memory
  g.Add(R"(
      a = Tanh(x)
      b = Selu(a)
      own = Elu(b)
      c = Mul(own, half)
      d = Neg(c)
      other = Elu(d)
      alone = Neg(other)
      out = Elu(alone))");
  const std::string expected = g.Result("out");
  const std::string log = LoggedBy([&] {
    g.Compile();
    for (int run = 0; run < 3; ++run) {
      g.values.clear();
      CHECK(g.Result("out") == expected);
    }
  });
  for (const char* line : {
           "tfplug: the region 'b/region' runs 2 nodes (1 inputs)\n",
           "tfplug: the region 'd/region' runs 2 nodes (2 inputs)\n",
           "tfplug: the region 'b/region' ends at 'own' (Elu) and 0 others, "
           "which "
           "another region needs\n",
           "tfplug: 'own' (Elu) is in no region: no synchronous kernel for it "
           "is made from the backend's primitives\n",
           "tfplug: 'alone' (Neg) is in no region: no other node can be in a "
           "region with it\n",
           "tfplug: the region 'b/region' is not recorded: a kernel uses the "
           "stream itself\n",
       }) {
    CHECK_MESSAGE(absl::StrContains(log, line), log);
  }
  CHECK_FALSE(absl::StrContains(log, "'d/region' ends"));
  CHECK_FALSE(absl::StrContains(log, "'d/region' is not recorded"));
}

TEST_CASE("an error names the op and node that fails") {
  RegionGraph g;
  g.Feed("x: float[2,3] = [1, 2, 3, 4, 5, 6]");
  g.Add(R"(
      fine = Tanh(x)
      shape: int32[2] = [4, 2]
      wrong = Reshape(fine, shape)
      out = Elu(wrong))");
  CHECK(g.Compile() == 1);
  const std::string error = g.Result("out");
  CHECK_MESSAGE(absl::StrContains(error, "node 'wrong'"), error);
  CHECK_MESSAGE(absl::StrContains(error, "6 values"), error);
}

// Every call of TensorFlow that can fail fails once, in a run that is recorded
// and in one that repeats the record: the region reports it, and leaks nothing.
TEST_CASE("a failure in the middle fails the region") {
  RegionGraph g;
  g.Feed("x: float[2,2] = [1, 2, 3, 4]");
  g.Add(R"(
      a = MatMul(x, x)
      b = AddV2(a, x)
      axes: int32[1] = [0]
      c = Sum(b, axes)
      d = Shape(b)
      e = Reshape(b, d)
      out = Elu(c)
      out2 = Elu(e))");
  const auto expected = g.Results();
  g.Compile();
  const Node region = g["e/region"];
  REQUIRE(region);
  const auto run = [&](testing::FakeKernel& kernel) {
    testing::KernelRun run(kernel, &g.fixture.device());
    run.AddInput(testing::InputSlot(g.feeds.at("x")));
    run.AddOutput(DataType::kFloat);
    run.AddOutput(DataType::kFloat);
    return run.Run();
  };
  int64_t calls[2];
  for (const int replays : {0, 1}) {
    auto kernel = g.MakeKernel(region);
    REQUIRE_MESSAGE(kernel.ok(), kernel.status().ToString());
    if (replays != 0) CHECK(run(**kernel).ok());
    calls[replays] = testing::CountCalls([&] { CHECK(run(**kernel).ok()); });
    for (int64_t call = 1; call <= calls[replays]; ++call) {
      auto fresh = g.MakeKernel(region);
      REQUIRE(fresh.ok());
      if (replays != 0) CHECK(run(**fresh).ok());
      const int64_t live = testing::Counted<capi::TF_Tensor>::live;
      const testing::Fault fault(call);
      const absl::Status status = run(**fresh);
      CHECK_MESSAGE(!status.ok(), call, " ", fault.failed());
      CHECK(testing::Counted<capi::TF_Tensor>::live == live);
    }
  }
  CHECK(calls[0] > 15);
  // One input, two outputs, the arena, and a shared output.
  CHECK(calls[1] < 10);
  CHECK(g.Results() == expected);
}

TEST_CASE("a record is for given shapes and host values, and ends with 8") {
  RegionGraph g;
  g.Feed(R"(x: float[6] = [1, 2, 3, 4, 5, 6]
            shape: int32[2] = [2, 3])");
  g.Add(R"(
      a = Neg(x)
      b = Reshape(a, shape)
      c = Tanh(b)
      out = Elu(c))");
  g.Compile();
  const std::string first = g.Result("out");
  CHECK(first.substr(0, 4) == "2,3:");
  for (int rows = 1; rows <= 20; ++rows) {
    for (int repeats = 0; repeats < 2; ++repeats) {
      g.Feed(absl::StrCat("x: float[", 2 * rows, "] = 0.5"));
      g.Feed(absl::StrCat("shape: int32[2] = [", rows, ", 2]"));
      CHECK(g.Result("out").substr(0, 3) ==
            absl::StrCat(rows, ",2:").substr(0, 3));
      g.Feed("shape: int32[2] = [2, -1]");
      CHECK(g.Result("out").substr(0, 3) ==
            absl::StrCat("2,", rows).substr(0, 3));
    }
  }
}

// Inputs that share memory in one run need not do so in the next.
TEST_CASE("a record of inputs that share memory is for such inputs only") {
  RegionGraph g;
  g.Feed(R"(x: float[2] = [3, 4]
            y: float[2] = [1, 1])");
  g.Add(R"(
      a = Sub(x, y)
      b = Neg(a)
      out = Elu(b))");
  const std::string expected = g.Result("out");
  g.Compile();
  const auto y = g.feeds.at("y");
  g.feeds.insert_or_assign("y", g.feeds.at("x"));
  g.Result("out");
  g.values.clear();
  g.feeds.insert_or_assign("y", y);
  CHECK(g.Result("out") == expected);
}

TEST_CASE("buffers that are used at the same time do not overlap") {
  std::mt19937 random;
  for (int round = 0; round < 200; ++round) {
    std::vector<op_kernels_internal::RegionBuffer> buffers(random() % 30);
    size_t sum = 0;
    for (auto& buffer : buffers) {
      buffer.size = 1 + random() % 5000;
      buffer.first = static_cast<int>(random() % 20);
      buffer.last = buffer.first + static_cast<int>(random() % 6);
      sum += buffer.size + 256;
    }
    const int64_t size = op_kernels_internal::PlanArena(buffers);
    CHECK(size <= static_cast<int64_t>(sum));
    for (const auto& a : buffers) {
      const auto end = a.offset + static_cast<int64_t>(a.size);
      CHECK(end <= size);
      for (const auto& b : buffers) {
        if (&a == &b || a.last < b.first || b.last < a.first) continue;
        CHECK((end <= b.offset ||
               b.offset + static_cast<int64_t>(b.size) <= a.offset));
      }
    }
  }
}

// The attribute comes from files, too: the kernel is constructed only if all of
// it is valid.
TEST_CASE("a subgraph that does not fit is refused") {
  RegionGraph g;
  g.Add(R"(
      x = Placeholder()
      a = Neg(x)
      b = AddV2(a, x)
      out = Elu(b))");
  g.Compile();
  const Node region = g["b/region"];
  REQUIRE(region);
  const std::string subgraph = *region.GetAttr<std::string>("graph");
  CHECK(g.MakeKernel(region).ok());
  const auto error_of = [&](auto change) {
    Graph changed = *Graph::Parse(std::string(subgraph));
    change(changed);
    region.SetAttr("graph", changed.ToString());
    return std::string(g.MakeKernel(region).status().message());
  };
  const auto expect = [](const std::string& error, const char* part) {
    CHECK_MESSAGE(absl::StrContains(error, part), error);
  };
  expect(error_of([](Graph& s) { s.FindNode("a").SetOp("Elu"); }),
         "node 'a' (Elu) of the region: a region may contain only");
  expect(error_of([](Graph& s) { s.FindNode("a").SetOp("Nothing"); }),
         "Op type not registered");
  expect(
      error_of([](Graph& s) { s.FindNode("a").SetAttr("T", DataType::kHalf); }),
      "another type");
  expect(error_of([](Graph& s) {
           CHECK(s.FindNode("a").SetInput(0, {s.FindNode("b"), 0}).ok());
         }),
         "no output of an earlier node");
  expect(error_of([](Graph& s) {
           CHECK(s.FindNode("b").SetInput(0, {s.FindNode("a"), 7}).ok());
         }),
         "no output of an earlier node");
  expect(error_of([](Graph& s) { CHECK(s.FindNode("b").RemoveInput(1).ok()); }),
         "it has 1 inputs");
  expect(error_of([](Graph& s) {
           for (const Node node : s.nodes("_Arg")) node.SetAttr("index", 1);
         }),
         "no input or output 1");
  expect(error_of([](Graph& s) {
           for (const Node node : s.nodes("_Retval")) node.SetAttr("index", -1);
         }),
         "no input or output -1");
  expect(error_of([](Graph& s) {
           for (const Node node : s.nodes("_Retval")) {
             CHECK(node.SetInput(0, s.FindNode("a").input(0)).ok());
           }
         }),
         "is not one output of a kernel");
  expect(error_of([](Graph& s) {
           const Node result = *s.nodes("_Retval").begin();
           CHECK(s.RemoveNode(result).ok());
         }),
         "no _Retval for its output 0");
  region.SetAttr("graph", subgraph.substr(0, subgraph.size() / 2));
  CHECK_FALSE(g.MakeKernel(region).ok());
  // Arbitrary changes may be valid; they must not crash.
  std::mt19937 random;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = subgraph;
    for (unsigned n = random() % 3 + 1; n > 0; --n) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    region.SetAttr("graph", bytes);
    g.MakeKernel(region).status().IgnoreError();
  }
}

}  // namespace
}  // namespace tfplug::region_test
