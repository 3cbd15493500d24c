// SPDX-License-Identifier: Apache-2.0
#include "tfplug/op_kernels/region.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
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
  g.Feed<float>("x", {2, 3}, {1, -2, 3, -4, 5, -6});
  g.Feed<float>("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  g.Add(R"(
      x, w = Placeholder()
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
      left = Elu(rows)
      right = Elu(same)
      last = Elu(flat))");
  const std::string left = g.Result("left"), right = g.Result("right"),
                    last = g.Result("last");
  g.Compile();
  CHECK(g.NumRegions() == 1);
  for (const Node node : g.graph.nodes()) {
    CHECK(node.op() != "MatMul");
    CHECK(node.op() != "Shape");
  }
  CHECK(g.Result("left") == left);
  CHECK(g.Result("right") == right);
  CHECK(g.Result("last") == last);
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
  g.Compile();
  CHECK(g.NumRegions() == 1);
  for (const char* name : {"kept", "own", "random", "labelled", "elsewhere",
                           "unknown", "copied"}) {
    CHECK_MESSAGE(g[name], name);
  }
  CHECK_FALSE(g["a"]);
  CHECK_FALSE(g["b"]);
}

TEST_CASE("an author's kernel that uses the launcher is repeated") {
  RegionGraph g;
  g.Feed<float>("x", {2}, {6, -8});
  g.Add(R"(
      x = Placeholder()
      a = Neg(x)
      own = Softsign(a)
      b = Neg(own)
      out = Elu(b))");
  const std::string expected = g.Result("out");
  g.Compile();
  CHECK(g.NumRegions() == 1);
  CHECK_FALSE(g["own"]);
  OwnKernel::enqueued = 0;
  for (int run = 1; run <= 3; ++run) {
    g.values.clear();
    // Other memory, and after the first run other values.
    g.Feed<float>("x", {2}, {run == 1 ? 6.0f : 10.0f, -8});
    if (run == 1) {
      CHECK(g.Result("out") == expected);
    } else {
      CHECK(g.Compute(g["out"]).ok());
      CHECK(testing::ReadTensor<float>(&g.fixture.device(),
                                       g.values["out"][0].first)
                ->elements == std::vector<float>{5, -4});
    }
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
  g.Feed<float>("x", {2}, {6, -8});
  g.Add(R"(
      x = Placeholder()
      a = Tanh(x)
      b = Selu(a)
      own = Elu(b)
      c = Neg(own)
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
           "tfplug: the region 'd/region' runs 2 nodes (1 inputs)\n",
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

TEST_CASE("an op between two others prevents a cycle") {
  RegionGraph g;
  g.Feed<float>("x", {2}, {1, 2});
  g.Add(R"(
      x = Placeholder()
      a = Tanh(x)
      b = Neg(a)
      own = Elu(b)
      c = AddV2(b, own)
      d = Neg(c)
      out = Elu(d))");
  const std::string out = g.Result("out");
  g.Compile();
  CHECK(g.NumRegions() == 2);
  CHECK(g.Result("out") == out);
}

TEST_CASE("control edges keep their order") {
  RegionGraph g;
  g.Feed<float>("x", {2}, {1, 2});
  g.Add(R"(
      x = Placeholder()
      first = Elu(x)
      a = Tanh(x, ^first)
      b = Neg(x, ^a)
      later = Elu(x, ^b)
      one: int32 = 1 (^later)
      c = ExpandDims(x, one)
      d = Neg(c)
      out = Elu(b)
      out2 = Elu(d))");
  g.Compile();
  CHECK(g.NumRegions() == 2);
  for (const char* name : {"out", "out2"}) {
    REQUIRE(g.Compute(g[name]).ok());
  }
  const auto at = [&](const std::string& name) {
    return std::find(g.order.begin(), g.order.end(), name) - g.order.begin();
  };
  CHECK(at("first") < at("b/region"));
  CHECK(at("b/region") < at("later"));
  CHECK(at("later") < at("d/region"));
}

TEST_CASE("a constant that is ordered after a node does not divide a region") {
  RegionGraph g;
  g.Feed<float>("x", {2}, {1, 2});
  g.Feed<float>("half", {}, {0.5f});
  g.Add(R"(
      x = Placeholder()
      before = Elu(x)
      a = Tanh(x, ^before)
      half: float = 0.5 (^a)
      own = Elu(half)
      b = Mul(a, half)
      out = Elu(b))");
  const std::string out = g.Result("out");
  g.Compile();
  CHECK(g.NumRegions() == 1);
  CHECK(g.Result("out") == out);
  // What uses the constant still runs after the node.
  REQUIRE(g["own"].num_controls() == 1);
  CHECK(g["own"].control(0).op() == kRegionOp);
  // In a branch, the constant runs if the node does.
  g.Reset();
  g.Add(R"(
      x, pred = Placeholder()
      switch = Switch(x, pred)
      a = Tanh(switch:1)
      half: float = 0.5 (^a)
      b = Mul(a, half)
      out = Elu(b))");
  g.Compile();
  CHECK(g.NumRegions() == 0);
  CHECK(g["half"].num_controls() == 1);
  // One that is fetched, or run by name, still waits for what it waited for.
  g.Reset();
  g.item.nodes_to_preserve = {"half"};
  g.Add(R"(
      x = Placeholder()
      a = Tanh(x)
      half: float = 0.5 (^a)
      b = Mul(a, half)
      out = Elu(b))");
  g.Compile();
  CHECK(g["half"].num_controls() == 1);
}

TEST_CASE("branches and loops bound regions") {
  RegionGraph g;
  g.Add(R"(
      x, pred = Placeholder()
      a = Neg(x)
      b = Tanh(a)
      switch = Switch(b, pred)
      yes = Neg(switch:1)
      yes2 = Tanh(yes)
      no = Square(switch)
      no2 = Neg(no)
      merge = Merge(yes2, no2)
      c = Neg(merge)
      d = Tanh(c)
      out = Elu(d))");
  g.Compile();
  CHECK(g.NumRegions() == 4);
}

// What leaves the loop comes from `mask` in the second iteration, although no
// edge leads there but the one that closes the loop.
TEST_CASE("a path through an iteration of a loop prevents a cycle") {
  RegionGraph g;
  g.Add(R"(
      x, limit = Placeholder()
      enter = Enter(x) {frame_name="loop"}
      merge = Merge(enter, next)
      cond = LoopCond(limit)
      switch = Switch(merge, cond)
      exit = Exit(switch)
      after = Neg(exit)
      after2 = Tanh(after)
      out = Elu(after2)
      own1 = Elu(x)
      own2 = Elu(own1)
      own3 = Elu(own2)
      own4 = Elu(own3)
      mask = Neg(own4)
      mask2 = Tanh(mask)
      out2 = Elu(mask2)
      enter_mask = Enter(mask) {frame_name="loop", is_constant=true}
      product = Mul(switch:1, enter_mask)
      next = NextIteration(product))");
  g.Compile();
  CHECK(g.NumRegions() == 2);
  CHECK_FALSE(g["mask"]);
  CHECK_FALSE(g["after"]);
}

TEST_CASE("what a loop's counter reaches is left out") {
  RegionGraph g;
  g.Add(R"(
      x, i, i2, limit = Placeholder()
      one: int32[1] = [1]
      enter = Enter(x) {frame_name="loop"}
      merge = Merge(enter, next)
      counter = Enter(i) {frame_name="loop"}
      j = Merge(counter, next_j) {T=int32}
      cond = LoopCond(limit)
      switch = Switch(merge, cond)
      j_switch = Switch(j, cond) {T=int32}
      j_next = Maximum(j_switch:1, one) {T=int32}
      next_j = NextIteration(j_next) {T=int32}
      a = Tanh(switch:1)
      shape = Shape(a)
      b = Reshape(a, shape)
      c = Reshape(b, j_switch:1)
      d = ExpandDims(c, one)
      e = Tanh(d)
      next = NextIteration(e)
      out = Elu(switch)
      y = Tanh(x)
      z = Reshape(y, i2)
      out2 = Elu(z))");
  g.Compile();
  // Outside of loops, such a value is compared before a record is repeated.
  for (const char* name : {"a", "shape", "b", "d", "e", "y", "z"}) {
    CHECK_MESSAGE(!g[name], name);
  }
  for (const char* name : {"j_next", "c"}) CHECK_MESSAGE(g[name], name);
  CHECK(g.NumRegions() == 3);
}

TEST_CASE("an error names the op and node that fails") {
  RegionGraph g;
  g.Feed<float>("x", {2, 3}, {1, 2, 3, 4, 5, 6});
  g.Add(R"(
      x = Placeholder()
      fine = Tanh(x)
      shape: int32[2] = [4, 2]
      wrong = Reshape(fine, shape)
      out = Elu(wrong))");
  g.Compile();
  CHECK(g.NumRegions() == 1);
  const std::string error = g.Result("out");
  CHECK_MESSAGE(absl::StrContains(error, "node 'wrong'"), error);
  CHECK_MESSAGE(absl::StrContains(error, "6 values"), error);
}

// Every call of TensorFlow that can fail fails once, in a run that is recorded
// and in one that repeats the record: the region reports it, and leaks nothing.
TEST_CASE("a failure in the middle fails the region") {
  RegionGraph g;
  g.Feed<float>("x", {2, 2}, {1, 2, 3, 4});
  g.Add(R"(
      x = Placeholder()
      a = MatMul(x, x)
      b = AddV2(a, x)
      axes: int32[1] = [0]
      c = Sum(b, axes)
      d = Shape(b)
      e = Reshape(b, d)
      out = Elu(c)
      out2 = Elu(e))");
  const std::string expected = g.Result("out"), expected2 = g.Result("out2");
  g.Compile();
  const Node region = g["e/region"];
  REQUIRE(region);
  const auto run = [&](testing::FakeKernel& kernel) {
    testing::KernelRun run(kernel, &g.fixture.device());
    run.AddInput(testing::InputSlot(g.feeds.at("x").first));
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
  CHECK(g.Result("out") == expected);
  CHECK(g.Result("out2") == expected2);
}

TEST_CASE("a record is for given shapes and host values, and ends with 8") {
  RegionGraph g;
  g.Add(R"(
      x, shape = Placeholder()
      a = Neg(x)
      b = Reshape(a, shape)
      c = Tanh(b)
      out = Elu(c))");
  g.Feed<float>("x", {6}, {1, 2, 3, 4, 5, 6});
  g.Feed<int32_t>("shape", {2}, {2, 3});
  g.Compile();
  const std::string first = g.Result("out");
  CHECK(first.substr(0, 4) == "2,3:");
  for (int rows = 1; rows <= 20; ++rows) {
    for (int repeats = 0; repeats < 2; ++repeats) {
      g.values.clear();
      g.Feed<float>("x", {int64_t{2} * rows},
                    std::vector<float>(static_cast<size_t>(2 * rows), 0.5f));
      g.Feed<int32_t>("shape", {2}, {rows, 2});
      CHECK(g.Result("out").substr(0, 3) ==
            absl::StrCat(rows, ",2:").substr(0, 3));
      g.values.clear();
      g.Feed<int32_t>("shape", {2}, {2, -1});
      CHECK(g.Result("out").substr(0, 3) ==
            absl::StrCat("2,", rows).substr(0, 3));
    }
  }
}

// Inputs that share memory in one run need not do so in the next.
TEST_CASE("a record of inputs that share memory is for such inputs only") {
  RegionGraph g;
  g.Add(R"(
      x, y = Placeholder()
      a = Sub(x, y)
      b = Neg(a)
      out = Elu(b))");
  g.Feed<float>("x", {2}, {3, 4});
  g.Feed<float>("y", {2}, {1, 1});
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

// ---- Repeated launches -------------------------------------------------------

using op_kernels_internal::LaunchOf;
using op_kernels_internal::Place;
using op_kernels_internal::Target;
using primitives::PrimitiveTable;

// The operands that the primitive below has seen last.
std::vector<Operand>& Seen() {
  static std::vector<Operand> seen;
  return seen;
}
absl::Status MatMulMap(void*, void*, Launcher&, const Operand& a,
                       const Operand& b, const Expression&, Operands inputs,
                       Operands outputs) {
  Seen() = {a, b};
  Seen().insert(Seen().end(), inputs.begin(), inputs.end());
  Seen().insert(Seen().end(), outputs.begin(), outputs.end());
  return absl::OkStatus();
}

// An operand in which no two dimensions, strides or other numbers agree.
Operand MakeOperand(int rank, int number) {
  Operand operand;
  operand.type = number % 2 == 0 ? DataType::kFloat : DataType::kInt64;
  operand.scalar = 1000 + static_cast<uint64_t>(number);
  operand.axis_size = 2000 + number;
  operand.axis_stride = 3000 + number;
  for (int d = 0; d < rank; ++d) {
    operand.AddDim(100 * number + d + 1, 10000 * number + d + 1);
  }
  return operand;
}

TEST_CASE("a repeated launch has all of its operands, at their new addresses") {
  PrimitiveTable table = {};
  table.mat_mul_map = MatMulMap;
  Launcher launcher(&table, nullptr, nullptr, nullptr);
  const Target target = {&table, nullptr, nullptr, &launcher};
  char one[64], other[64];
  for (const int rank : {0, 1, 2, 3, 4, 5, kMaxViewRank}) {
    for (const size_t count :
         {size_t{0}, size_t{3}, size_t{14}, size_t{15}, size_t{40}}) {
      CAPTURE(rank);
      CAPTURE(count);
      // One operand has more dimensions than those before it.
      std::vector<Operand> all;
      for (size_t i = 0; i < count + 2; ++i) {
        all.push_back(MakeOperand(i == count ? rank : 1, static_cast<int>(i)));
      }
      const Operands inputs = absl::MakeConstSpan(all).subspan(1, count);
      const Operands outputs = absl::MakeConstSpan(all).subspan(count + 1);
      int64_t next = 0;
      const auto place_of = [&](const Operand&) {
        ++next;
        return next == 2 ? Place{}
                         : Place{next % 2 == 0 ? size_t{1} : size_t{2}, next};
      };
      const LaunchOf<&PrimitiveTable::mat_mul_map, true, const Operand&,
                     const Operand&, const Expression&, Operands, Operands>
          launch(place_of, all[0], all[0], Expression(), inputs, outputs);
      std::vector<Operand> expected = {all[0]};
      expected.insert(expected.end(), all.begin(), all.end());
      for (const bool swaps : {false, true}) {
        char* const first = swaps ? other : one;
        char* const second = swaps ? one : other;
        CHECK(launch.Run(target, {nullptr, first, second}).ok());
        REQUIRE(Seen().size() == expected.size());
        for (size_t i = 0; i < expected.size(); ++i) {
          const Operand &seen = Seen()[i], &kept = expected[i];
          CAPTURE(i);
          CHECK(seen.kind == kept.kind);
          CHECK(seen.type == kept.type);
          CHECK(seen.rank == kept.rank);
          CHECK(seen.scalar == kept.scalar);
          CHECK(seen.axis_size == kept.axis_size);
          CHECK(seen.axis_stride == kept.axis_stride);
          for (int d = 0; d < kept.rank; ++d) {
            CHECK(seen.dim(d) == kept.dim(d));
            CHECK(seen.stride(d) == kept.stride(d));
          }
          const auto place = static_cast<int64_t>(i) + 1;
          CHECK(seen.data == (place == 2       ? nullptr
                              : place % 2 == 0 ? first + place
                                               : second + place));
        }
      }
    }
  }
}

// ---- Random graphs -----------------------------------------------------------

// Adds random ops on matrices of the shape 3 x 3, in device memory, and on
// shapes and axes, in host memory, with control edges. Elu and variables bound
// regions. As in TensorFlow's functions, control edges order what reads a
// variable after what wrote it before, and what writes it after both.
class RandomNodes {
 public:
  RandomNodes(RegionGraph& g, unsigned seed) : g_(g), random_(seed) {
    matrices_ = {"x0", "x1"};
    g_.Add("x0, x1 = Placeholder()");
    g_.Add("perm: int32[2] = [1, 0]");
    g_.Add("axes: int32[1] = [0]");
    g_.Add("square: int32[2] = [3, 3]");
    g_.Add("one: int32 = 1");
    g_.Add("fed = Placeholder()");
    shapes_ = {"square", "fed"};
    g_.Add("v0, v1 = VarHandleOp()");
    for (int i = 0; i < 30; ++i) AddOp();
    for (size_t i = matrices_.size() / 2; i < matrices_.size(); ++i) {
      results_.push_back(absl::StrCat("out", i));
      g_.Add(absl::StrCat(results_.back(), " = Elu(", matrices_[i], ")"));
    }
    for (const char* v : {"v0", "v1"}) {
      results_.push_back(absl::StrCat("out", v));
      g_.Add(absl::StrCat(results_.back(), " = ReadVariableOp(", v,
                          accesses_[v].last_write, ")"));
    }
  }
  const std::vector<std::string>& results() const { return results_; }

  // Sets the values of the inputs.
  void Feed(unsigned seed, bool infers_rows) const {
    std::mt19937 random(seed);
    for (const char* name : {"x0", "x1"}) {
      std::vector<float> elements(9);
      for (float& x : elements) x = std::normal_distribution<float>()(random);
      g_.Feed<float>(name, {3, 3}, elements);
      g_.variables.insert_or_assign(name[1] == '0' ? "v0" : "v1",
                                    g_.feeds.at(name));
    }
    g_.Feed<int32_t>("fed", {2}, {infers_rows ? -1 : 3, 3});
  }

 private:
  const std::string& Pick(const std::vector<std::string>& names) {
    // Recent values are more likely.
    const size_t half = random_() % 2 * (names.size() / 2);
    return names[half + random_() % (names.size() - half)];
  }
  void AddOp() {
    const std::string name = absl::StrCat("n", count_++);
    const std::string a = Pick(matrices_), b = Pick(matrices_);
    std::string op;
    switch (random_() % 12) {
      case 10: {
        const char* const v = random_() % 2 == 0 ? "v0" : "v1";
        Accesses& accesses = accesses_[v];
        g_.Add(absl::StrCat(name, " = ReadVariableOp(", v, accesses.last_write,
                            ")"));
        absl::StrAppend(&accesses.since, ", ^", name);
        matrices_.push_back(name);
        return;
      }
      case 11: {
        const char* const v = random_() % 2 == 0 ? "v0" : "v1";
        Accesses& accesses = accesses_[v];
        g_.Add(absl::StrCat(name, " = AssignVariableOp(", v, ", ", a,
                            accesses.since, ")"));
        accesses.last_write = accesses.since = absl::StrCat(", ^", name);
        return;
      }
      case 0:
        op = absl::StrCat("MatMul(", a, ", ", b);
        break;
      case 1: {
        // A sum over rows, which is broadcast again.
        g_.Add(absl::StrCat(name, "s = Sum(", a, ", axes) {keep_dims=true}"));
        op = absl::StrCat("AddV2(", b, ", ", name, "s");
        break;
      }
      case 2:
        op = absl::StrCat("Transpose(", a, ", perm");
        break;
      case 3:
        op = absl::StrCat("Reshape(", a, ", ", Pick(shapes_));
        break;
      case 4:
        g_.Add(absl::StrCat(name, "shape = Shape(", a, ")"));
        shapes_.push_back(name + "shape");
        if (random_() % 2 == 0) {
          g_.Add(absl::StrCat(name, "max = Maximum(", shapes_.back(), ", ",
                              Pick(shapes_), ") {T=int32}"));
          shapes_.push_back(name + "max");
        }
        return;
      case 5:
        g_.Add(absl::StrCat(name, "e = ExpandDims(", a, ", one)"));
        op = absl::StrCat("Squeeze(", name, "e");
        break;
      case 6:
        op = absl::StrCat("Elu(", a);
        break;
      case 7: {
        const char* const unary[] = {"Tanh", "Neg", "Square", "Identity",
                                     "Softsign"};
        op = absl::StrCat(unary[random_() % 5], "(", a);
        break;
      }
      default: {
        const char* const binary[] = {"AddV2", "Mul", "Sub", "Maximum"};
        op = absl::StrCat(binary[random_() % 4], "(", a, ", ", b);
      }
    }
    if (random_() % 4 == 0) absl::StrAppend(&op, ", ^", Pick(matrices_));
    g_.Add(absl::StrCat(name, " = ", op, ")"));
    matrices_.push_back(name);
  }

  // Control inputs: the last assignment, and this and the reads since.
  struct Accesses {
    std::string last_write, since;
  };

  RegionGraph& g_;
  std::mt19937 random_;
  std::map<std::string, Accesses> accesses_;  // by variable
  int count_ = 0;
  std::vector<std::string> matrices_, shapes_, results_;
};

// TFPLUG_TEST_GRAPHS sets the number of graphs.
TEST_CASE("random graphs have the same results, bit by bit") {
  const char* const wanted = std::getenv("TFPLUG_TEST_GRAPHS");
  const unsigned count =
      wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : 200;
  int64_t num_regions = 0, before = 0, after = 0;
  minimal::Trace::Get().yields = false;
  RegionGraph g;
  for (unsigned seed = 0; seed < count; ++seed) {
    g.Reset();
    minimal::Trace::Get().Take();
    const RandomNodes random(g, seed);
    // The results for each set of feeds.
    std::vector<std::map<std::string, std::string>> expected(3);
    for (unsigned i = 0; i < expected.size(); ++i) {
      g.values.clear();
      random.Feed(seed + i, i % 2 != 0);
      for (const std::string& name : random.results()) {
        expected[i][name] = g.Result(name);
      }
    }
    g.kernels.clear();
    before += g.graph.num_nodes();
    g.Compile();
    after += g.graph.num_nodes();
    num_regions += g.NumRegions();
    for (const unsigned i : {0, 1, 2, 0, 1}) {
      g.values.clear();
      random.Feed(seed + i, i % 2 != 0);
      for (const std::string& name : random.results()) {
        CHECK_MESSAGE(g.Result(name) == expected[i][name], "seed ", seed, " ",
                      name, " run ", i);
      }
    }
  }
  minimal::Trace::Get().yields = true;
  CHECK(num_regions > count);
  CHECK(after * 10 < before * 8);
}

}  // namespace
}  // namespace tfplug::region_test
