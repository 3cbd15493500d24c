// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <tfplug/graph_pass.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "graph/build_graph.h"
#include "leak_checked_fake.h"
#include "tfplug/testing/graph_host.h"

// Named, because compilers differ in how they spell an unnamed namespace in
// class names.
namespace tfplug::pipeline_test {

using testing::GraphHost;
using testing::LeakCheckedFake;
using testing::TF_GrapplerItem;

// The actions of the passes, set by each test.
using RunFunction = std::function<absl::Status(Graph&, const PassContext&)>;
static RunFunction first_run, second_run;
static int live_passes = 0;
static bool constructor_throws = false;

struct Counted : GraphPass {
  Counted() {
#if defined(__cpp_exceptions)
    if (constructor_throws) throw std::runtime_error("no driver");
#endif
    ++live_passes;
  }
  ~Counted() override { --live_passes; }
};
struct First : Counted {
  absl::Status Run(Graph& graph, const PassContext& context) override {
    return first_run(graph, context);
  }
};
struct Second : Counted {
  absl::Status Run(Graph& graph, const PassContext& context) override {
    return second_run(graph, context);
  }
};
TFPLUG_REGISTER_GRAPH_PASSES("SIM", First, Second);

static absl::Status Nothing(Graph&, const PassContext&) {
  return absl::OkStatus();
}

static std::string MakeGraph() {
  Graph graph;
  Add(graph, "a = Const()\nb = Neg(a)\nc = Abs(b)");
  return graph.ToString();
}

struct Fixture {
  Fixture() {
    first_run = second_run = Nothing;
    constructor_throws = false;
    host = GraphHost::Register(&TF_InitGraph).value();
    item.nodes_to_preserve = {"c", "not in this graph"};
  }
  ~Fixture() { CHECK(live_passes == 0); }

  GraphHost::Outcome Optimize(int runs = 2) {
    auto outcome = host->Optimize(MakeGraph(), item, runs);
    CHECK(live_passes == 0);
    return outcome;
  }
  // Runs the optimizer once and returns its status. The graph must not change.
  std::string Failure() {
    const auto outcome = Optimize(1);
    CHECK(!outcome.changed);
    CHECK(outcome.graph == MakeGraph());
    return outcome.runs[0].ToString();
  }

  LeakCheckedFake fake;
  std::unique_ptr<GraphHost> host;
  TF_GrapplerItem item;
};

TEST_CASE("both entry points register the same optimizer") {
  Fixture fixture;
  auto other = GraphHost::Register(&TF_InitGraphPlugin);
  REQUIRE(other.ok());
  CHECK((*other)->device_type() == fixture.host->device_type());
  CHECK((*other)->device_type() == "SIM");
}

TEST_CASE("passes run in order on one graph; ABORTED means unchanged") {
  Fixture fixture;
  std::string order;
  first_run = [&](Graph& graph, const PassContext& context) {
    order += "1";
    CHECK(context.device_type() == "SIM");
    CHECK(live_passes == 2);
    if (graph.FindNode("b").op() == "Neg") graph.FindNode("b").SetOp("Sign");
    return absl::OkStatus();
  };
  second_run = [&](Graph& graph, const PassContext&) {
    order += "2";
    CHECK(graph.FindNode("b").op() == "Sign");
    return absl::OkStatus();
  };
  const auto outcome = fixture.Optimize();
  CHECK(order == "1212");
  CHECK(outcome.runs[0].ok());
  CHECK(absl::IsAborted(outcome.runs[1]));
  CHECK(TextOf(outcome.graph) ==
        Lines{"a = Const()", "b = Sign(a)", "c = Abs(b)"});
}

TEST_CASE("nodes with the same name are found before they are written") {
  Fixture fixture;
  // Neither pass uses names or edges.
  const std::string twice = MakeGraph() + MakeGraph();
  first_run = [&](Graph& graph, const PassContext&) {
    return graph.Replace(twice);
  };
  CHECK(fixture.Failure() ==
        "INVALID_ARGUMENT: optimize_func: tfplug::pipeline_test::First: two "
        "nodes have the name 'a'");
  fixture.item.nodes_to_preserve.clear();
  CHECK(fixture.Failure().find("two nodes have the name 'a'") !=
        std::string::npos);
  first_run = [](Graph& graph, const PassContext&) {
    for (Node node : graph.nodes("Neg")) node.SetAttr("T", DataType::kFloat);
    return absl::OkStatus();
  };
  const auto outcome = fixture.host->Optimize(twice, fixture.item, 1);
  CHECK(!outcome.changed);
  CHECK(outcome.runs[0].message().find("two nodes have the name 'a'") !=
        absl::string_view::npos);
  // Inputs from missing nodes in a graph from Replace() are found, too.
  first_run = [](Graph& graph, const PassContext&) {
    std::string node, bytes;
    internal::AppendField(node, 1, "b");
    internal::AppendField(node, 3, "a");
    internal::AppendField(bytes, 1, node);
    return graph.Replace(bytes);
  };
  CHECK(fixture.Failure().find("but the graph has no node 'a'") !=
        std::string::npos);
}

TEST_CASE("a pass that fails after an edit leaves the graph unchanged") {
  Fixture fixture;
  bool second_ran = false;
  first_run = [](Graph& graph, const PassContext&) {
    graph.FindNode("b").SetOp("Sign");
    return absl::InvalidArgumentError("node 'b' has no input 7");
  };
  second_run = [&](Graph&, const PassContext&) {
    second_ran = true;
    return absl::OkStatus();
  };
  CHECK(
      fixture.Failure() ==
      "INVALID_ARGUMENT: optimize_func: tfplug::pipeline_test::First: node 'b' "
      "has no input 7");
  CHECK(!second_ran);
  // TensorFlow would interpret ABORTED as "unchanged".
  first_run = [](Graph&, const PassContext&) {
    return absl::AbortedError("given up");
  };
  CHECK(fixture.Failure() ==
        "INTERNAL: optimize_func: tfplug::pipeline_test::First: given up");
}

#if defined(__cpp_exceptions)
TEST_CASE("a pass that throws, and one that cannot be constructed") {
  Fixture fixture;
  second_run = [](Graph& graph, const PassContext&) -> absl::Status {
    graph.FindNode("b").SetOp("Sign");
    throw std::runtime_error("thrown");
  };
  CHECK(
      fixture.Failure() ==
      "INTERNAL: optimize_func: tfplug::pipeline_test::Second: C++ exception: "
      "thrown");
  second_run = [](Graph&, const PassContext&) -> absl::Status {
    throw std::bad_alloc();
  };
  CHECK(fixture.Failure().find("RESOURCE_EXHAUSTED") == 0);
  constructor_throws = true;
  CHECK(fixture.Failure() ==
        "INTERNAL: optimize_func: tfplug::pipeline_test::First: C++ exception: "
        "no driver");
}
#endif

TEST_CASE("a pass cannot remove or rename a preserved node") {
  Fixture fixture;
  second_run = [](Graph& graph, const PassContext& context) {
    CHECK(context.IsPreserved("c"));
    CHECK(!context.IsPreserved("b"));
    return graph.RemoveNode(graph.FindNode("c"));
  };
  const std::string removed = fixture.Failure();
  CHECK(removed.find("FAILED_PRECONDITION: optimize_func: "
                     "tfplug::pipeline_test::Second: node 'c' must be "
                     "preserved") == 0);
  second_run = [](Graph& graph, const PassContext&) {
    return graph.FindNode("c").SetName("d");
  };
  CHECK(fixture.Failure() == removed);
}

TEST_CASE("the error for an invalid graph names the node and the pass") {
  Fixture fixture;
  const auto optimize = [&](const std::string& graph) {
    const auto outcome = fixture.host->Optimize(graph, fixture.item, 1);
    CHECK(outcome.graph == graph);
    return outcome.runs[0].ToString();
  };
  std::string twice = MakeGraph(), missing = MakeGraph();
  std::string node;
  internal::AppendField(node, 1, "b");
  internal::AppendField(node, 2, "Abs");
  internal::AppendField(twice, 1, node);
  // Building the table of names finds the error.
  first_run = [](Graph& graph, const PassContext&) {
    static_cast<void>(graph.FindNode("b"));
    return absl::OkStatus();
  };
  CHECK(optimize(twice).find("First: ") != std::string::npos);
  CHECK(optimize(twice).find("'b'") != std::string::npos);

  node.clear();
  internal::AppendField(node, 1, "lost");
  internal::AppendField(node, 2, "Abs");
  internal::AppendField(node, 3, "nowhere");
  internal::AppendField(missing, 1, node);
  // Building the table of edges finds the error.
  first_run = [](Graph& graph, const PassContext&) {
    static_cast<void>(graph.FindNode("lost").input(0));
    return absl::OkStatus();
  };
  CHECK(optimize(missing).find("First: ") != std::string::npos);
  CHECK(optimize(missing).find("nowhere") != std::string::npos);

  first_run = [](Graph& graph, const PassContext&) {
    const Node b = graph.FindNode("b");
    if (auto s = b.SetInput(0, graph.FindNode("c")); !s.ok()) return s;
    return graph.TopologicalOrder().status();
  };
  CHECK(optimize(MakeGraph()).find("'b'") != std::string::npos);
  CHECK(absl::IsInvalidArgument(
      fixture.host->Optimize("not a graph", fixture.item, 1).runs[0]));
}

TEST_CASE("failures of TensorFlow functions are returned without a leak") {
  Fixture fixture;
  first_run = [](Graph& graph, const PassContext& context) {
    if (!context.IsPreserved("b")) graph.FindNode("b").SetOp("Sign");
    return absl::OkStatus();
  };
  testing::FailEachCall([&] { return fixture.Optimize(1).runs[0]; });
}

// A graph with a node "large", whose attribute `value` holds `zeros` zero
// bytes. Pages that are never written take no memory.
struct LargeGraph {
  explicit LargeGraph(size_t zeros) {
    const auto wrap = [&](int field, std::string before) {
      std::string tag;
      internal::AppendVarint(tag,
                             internal::MakeTag(static_cast<uint32_t>(field),
                                               internal::kBytesType));
      internal::AppendVarint(tag, before.size() + zeros);
      return tag + before;
    };
    // TensorProto.tensor_content, AttrValue.tensor, and so on.
    std::string entry, node;
    internal::AppendField(entry, 1, "value");
    internal::AppendField(node, 1, "large");
    internal::AppendField(node, 2, "Const");
    const std::string head =
        wrap(1, node + wrap(5, entry + wrap(2, wrap(8, wrap(4, "")))));
    size = head.size() + zeros;
    memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    std::memcpy(memory, head.data(), head.size());
  }
  ~LargeGraph() { munmap(memory, size); }
  absl::string_view bytes() const {
    return absl::string_view(static_cast<const char*>(memory), size);
  }

  void* memory;
  size_t size;
};

TEST_CASE("more bytes than TensorFlow can parse are not written") {
  const LeakCheckedFake fake;
  const LargeGraph large(1200000000);
  const TF_GrapplerItem item;
  graph_internal::Pipeline pipeline(
      "SIM", {{"First", []() -> std::unique_ptr<GraphPass> {
                 return std::make_unique<First>();
               }}});
  capi::TF_Buffer out = {};
  first_run = [](Graph& graph, const PassContext&) {
    const Node copy = graph.AddNode("copy", "Const").value();
    return copy.CopyAttr(graph.FindNode("large"), "value");
  };
  CHECK(pipeline.Optimize(large.bytes(), &item, &out).ToString() ==
        "RESOURCE_EXHAUSTED: First: the edited graph has 2400000101 bytes, but "
        "TensorFlow cannot read more than 2147483647; keep large constants in "
        "variables");
  CHECK(out.data == nullptr);
  Graph graph = Graph::Parse(large.bytes()).value();
  CHECK(graph.Check().ok());
  REQUIRE(first_run(graph, PassContext("SIM", "", &item)).ok());
  CHECK(absl::IsResourceExhausted(graph.Check()));
  // The same graph is accepted if no pass changes it.
  first_run = Nothing;
  CHECK(absl::IsAborted(pipeline.Optimize(large.bytes(), &item, &out)));
}

TEST_CASE("the memory of one graph is reused for the next one") {
  Fixture fixture;
  first_run = [](Graph& graph, const PassContext&) {
    graph.FindNode("b").SetDevice(
        graph.FindNode("b").device() == "/device:CPU:0" ? "" : "/device:CPU:0");
    return absl::OkStatus();
  };
  using graph_internal::OutputBlock;
  OutputBlock::AddUser();
  void* const block = OutputBlock::Allocate(1000);
  OutputBlock::data_deallocator(block, 1000);
  CHECK(OutputBlock::Allocate(900) == block);
  OutputBlock::data_deallocator(block, 900);
  // A cached block that is too small or much too large is not reused.
  void* const larger = OutputBlock::Allocate(100000);
  OutputBlock::data_deallocator(larger, 100000);
  void* const small = OutputBlock::Allocate(0);
  REQUIRE(small != nullptr);
  OutputBlock::data_deallocator(small, 0);
  OutputBlock::RemoveUser();
  CHECK(fixture.Optimize(5).changed);
}

TEST_CASE("A cached block is neither too small nor released too early") {
  using graph_internal::OutputBlock;
  // A block of this size has at most 8 spare bytes in malloc().
  constexpr size_t kSize = (1 << 20) - 40, kHeader = 16;
  OutputBlock::AddUser();
  void* const block = OutputBlock::Allocate(kSize);
  REQUIRE(block != nullptr);
  OutputBlock::data_deallocator(block, kSize);
  // The block is cached, so malloc() does not return it.
  void* const other = std::malloc(kSize + kHeader);
  CHECK(other != static_cast<char*>(block) - kHeader);
  CHECK(OutputBlock::Allocate(kSize) == block);
  OutputBlock::data_deallocator(block, kSize);
  void* const larger = OutputBlock::Allocate(kSize + 12);
  CHECK(malloc_usable_size(static_cast<char*>(larger) - kHeader) >=
        kSize + 12 + kHeader);
  OutputBlock::data_deallocator(larger, kSize + 12);
  OutputBlock::RemoveUser();
  std::free(other);
}

TEST_CASE("Names to preserve that are not in the graph are ignored") {
  Fixture fixture;
  for (int i = 0; i < 1000; ++i) {
    fixture.item.nodes_to_preserve.push_back("absent" + std::to_string(i));
  }
  first_run = [](Graph& graph, const PassContext&) {
    graph.FindNode("b").SetOp("Sign");
    return absl::OkStatus();
  };
  CHECK(fixture.Optimize(1).changed);
  first_run = [](Graph& graph, const PassContext&) {
    return graph.FindNode("c").SetName("absent7");
  };
  CHECK(fixture.Failure().find("node 'c' must be preserved") !=
        std::string::npos);
}

}  // namespace tfplug::pipeline_test
