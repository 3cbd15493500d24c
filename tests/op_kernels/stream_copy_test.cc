// SPDX-License-Identifier: Apache-2.0
#include "tfplug/op_kernels/stream_copy.h"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "describe_op.h"
#include "fixture.h"
#include "queue_device.h"
#include "tfplug/kernel/memory_labels.h"
#include "tfplug/op_kernels/register.h"
#include "tfplug/passes/copy_on_stream.h"
#include "tfplug/primitives/reference_backend.h"
#include "tfplug/testing/graph_text.h"

// CopyOnStream, and the kernels of the ops that it makes.
namespace tfplug::stream_copy_test {
namespace {

using Platform = minimal::PlatformOf<queue::Device>;

struct NoKernel : BackendKernel {
  absl::Status Run(OpRun&) override { return absl::OkStatus(); }
};
void TestOps(const Registrar& registrar) {
  registrar.Add<NoKernel>(KernelDef("Relu"));
  registrar.Add<NoKernel>(KernelDef("Sum").HostMemory("reduction_indices"));
  registrar.Add<NoKernel>(KernelDef("Shape").HostMemory("output"));
  registrar.Add<NoKernel>(
      KernelDef("Reshape").HostMemory("shape").Label(kOnDeviceLabel), "T",
      kInt32Type);
}
TFPLUG_REGISTER_DEVICE(Platform);
TFPLUG_REGISTER_BACKEND(ReferenceBackend<queue::Stream>, TestOps,
                        StreamCopyOps);

struct Kernels {
  Kernels() {
    Describe("Relu", "x:T", "y:T");
    Describe("Sum", "input:T reduction_indices:Tidx", "output:T");
    Describe("Shape", "input:T", "output:out_type");
    Describe("Identity", "input:T", "output:T");
    Describe("Unknown", "x:T", "y:T");
    Describe("Switch", "data:T pred:bool", "output_false:T output_true:T");
    Describe("Reshape", "tensor:T shape:Tshape", "output:T");
    Describe("AddV2", "x:T y:T", "z:T");
    Describe("Less", "x:T y:T", "z:bool");
    Describe("Const", "", "output:dtype");
    Describe("LogicalAnd", "x:bool y:bool", "z:bool");
    testing::KernelRegistry::Get().Refill(&TF_InitKernel);
  }
  ~Kernels() {
    testing::KernelRegistry::Get().Clear();
    testing::RegisteredOps().clear();
    testing::KnownOpDefs().clear();
  }
  Fixture<Platform> fixture;
};

// ---- The pass ----------------------------------------------------------------

class CopyGraph {
 public:
  explicit CopyGraph(const std::string& text) {
    const auto last =
        testing::AddNodes(graph, text,
                          {"/job:localhost/replica:0/task:0/device:MINIMAL:0",
                           "T=float, Tidx=int32, Tshape=int32, "
                           "out_type=int32",
                           nullptr});
    REQUIRE_MESSAGE(last.ok(), last.status().ToString());
    Run();
  }
  void Run() {
    const PassContext context("MINIMAL", "", &item);
    const absl::Status status = CopyOnStream().Run(graph, context);
    REQUIRE_MESSAGE(status.ok(), status.ToString());
    REQUIRE(graph.Check().ok());
  }
  // Returns the node that is input `i` of a node.
  Node InputOf(const std::string& node, int i = 0) {
    return graph.FindNode(node).input(i).node;
  }
  // Returns whether an input comes through a copy from another node's output.
  bool IsCopy(const std::string& node, const char* op, const std::string& from,
              int i = 0) {
    const Node copy = InputOf(node, i);
    return copy.op() == op && copy.input(0).node.name() == from &&
           copy.input(0).port == 0 && copy.device() == kDevice;
  }
  static constexpr char kDevice[] =
      "/job:localhost/replica:0/task:0/device:MINIMAL:0";

  Kernels kernels;
  testing::TF_GrapplerItem item;
  Graph graph;
};

TEST_CASE("tensors of the CPU are copied once for the kernels that read them") {
  CopyGraph g(R"(
      x, y = Placeholder() @CPU
      axes: int32[1] = [0] @CPU
      a = Relu(x)
      b = Relu(x)
      c = Sum(y, axes)
      d = Identity(y)
      e = Unknown(x)
      f = Relu(x) @CPU
      g = Relu(a)
      h = Relu(d))");
  CHECK(g.IsCopy("a", kToDeviceOp, "x"));
  CHECK(g.InputOf("b") == g.InputOf("a"));
  CHECK(g.IsCopy("c", kToDeviceOp, "y"));
  CHECK(g.InputOf("c", 1).name() == "axes");
  CHECK(g.InputOf("d") == g.InputOf("c"));
  CHECK(g.InputOf("e").name() == "x");
  CHECK(g.InputOf("f").name() == "x");
  CHECK(g.InputOf("g").name() == "a");
  CHECK(g.graph.num_nodes() == 13);
  // TensorFlow runs passes twice.
  g.Run();
  CHECK(g.graph.num_nodes() == 13);
}

TEST_CASE("results are copied once for the nodes on the CPU that read them") {
  CopyGraph g(R"(
      x = Placeholder()
      a = Relu(x)
      b = Identity(a)
      c = Shape(a)
      i = Identity(c) {T=int32}
      u = Unknown(a)
      p = Relu(a) @CPU
      q = Relu(a) @CPU
      r = Relu(b) @CPU
      s = Relu(c) @CPU {T=int32}
      t = Relu(i) @CPU {T=int32}
      v = Relu(u, ^a) @CPU)");
  CHECK(g.IsCopy("p", kToHostOp, "a"));
  CHECK(g.InputOf("q") == g.InputOf("p"));
  CHECK(g.InputOf("b").name() == "a");
  CHECK(g.IsCopy("r", kToHostOp, "b"));
  CHECK(g.InputOf("s").name() == "c");
  CHECK(g.InputOf("t").name() == "i");
  CHECK(g.InputOf("v").name() == "u");
  CHECK(g.graph.num_nodes() == 14);
  g.Run();
  CHECK(g.graph.num_nodes() == 14);
}

TEST_CASE("tensors in host memory are copied for kernels that read others") {
  CopyGraph g(R"(
      x = Placeholder() {dtype=int32}
      n: int32[2] = [3, 4]
      sum = AddV2(n, n) {T=int32}
      less = Less(sum, n) {T=int32}
      both = LogicalAnd(less, less) {!T, _kernel="tfplug_on_host"}
      one = LogicalAnd(less, less) {!T, _kernel="another"}
      real = AddV2(x, x)
      a = Relu(n) {T=int32}
      b = Relu(sum) {T=int32}
      c = Relu(less) {T=bool}
      d = Relu(both) {T=bool}
      e = Relu(one) {T=bool}
      f = Relu(real)
      i = Identity(sum) {T=int32}
      j = Relu(i) {T=int32}
      k = AddV2(i, sum) {T=int32}
      l = Unknown(sum) {T=int32}
      condition = Switch(less, less) {T=bool}
      switch = Switch(sum, less) {T=int32})");
  CHECK(g.IsCopy("a", kToDeviceOp, "n"));
  CHECK(g.IsCopy("b", kToDeviceOp, "sum"));
  CHECK(g.IsCopy("c", kToDeviceOp, "less"));
  CHECK(*g.InputOf("c").GetAttr<DataType>("T") == DataType::kBool);
  CHECK(g.IsCopy("d", kToDeviceOp, "both"));
  CHECK(g.InputOf("e").name() == "one");
  CHECK(g.InputOf("f").name() == "real");
  CHECK(g.IsCopy("j", kToDeviceOp, "i"));
  CHECK(g.InputOf("k").name() == "i");
  CHECK(g.InputOf("l").name() == "sum");
  CHECK(g.IsCopy("condition", kToDeviceOp, "less"));
  CHECK(g.InputOf("condition", 1).name() == "less");
  CHECK(g.InputOf("switch").name() == "sum");
  const int64_t nodes = g.graph.num_nodes();
  g.Run();
  CHECK(g.graph.num_nodes() == nodes);
}

TEST_CASE("constants are in host memory for kernels that need them there") {
  CopyGraph g(R"(
      x, c = Placeholder()
      axes: int64[1] = [0] (^c)
      a = Sum(x, axes)
      b = Sum(x, axes)
      same = Relu(axes) {T=int64}
      small: int32[1] = [0]
      d = Sum(x, small)
      computed = Relu(axes) {T=int64}
      e = Sum(x, computed)
      on_cpu: int64[1] = [0] @CPU
      f = Sum(x, on_cpu))");
  const Node copy = g.InputOf("a", 1);
  CHECK(copy.op() == "HostConst");
  CHECK(copy.device() == g.kDevice);
  CHECK(copy.RawAttr("value") == g.graph.FindNode("axes").RawAttr("value"));
  CHECK(copy.control(0).name() == "c");
  CHECK(g.InputOf("b", 1) == copy);
  CHECK(g.InputOf("same").name() == "axes");
  CHECK(g.InputOf("d", 1).name() == "small");
  CHECK(g.InputOf("e", 1).name() == "computed");
  CHECK(g.InputOf("f", 1).name() == "on_cpu");
}

TEST_CASE("int32 tensors of the device are reshaped there") {
  CopyGraph g(R"(
      x = Relu(float) {T=int32}
      float = Placeholder()
      s: int32[1] = [-1]
      a = Reshape(x, s) {T=int32}
      b = Relu(a) {T=int32}
      on_host = AddV2(s, s) {T=int32}
      c = Reshape(on_host, s) {T=int32}
      d = Relu(c) {T=int32}
      e = Reshape(x, s) {T=int32}
      f = Relu(e) {T=int32}
      g = AddV2(e, e) {T=int32}
      h = Reshape(x, s) {T=int32}
      i = Relu(h) @CPU {T=int32}
      k = Reshape(float, s)
      l = Relu(k))");
  const auto is_on_device = [&](const char* name) {
    return g.graph.FindNode(name).GetAttr<std::string>("_kernel").value_or(
               "") == kOnDeviceLabel;
  };
  CHECK(is_on_device("a"));
  CHECK(g.InputOf("b").name() == "a");
  for (const char* other : {"c", "e", "h", "k"}) {
    CAPTURE(other);
    CHECK(!is_on_device(other));
  }
  CHECK(g.IsCopy("d", kToDeviceOp, "c"));
  CHECK(g.IsCopy("f", kToDeviceOp, "e"));
  const int64_t nodes = g.graph.num_nodes();
  g.Run();
  CHECK(g.graph.num_nodes() == nodes);
  CHECK(is_on_device("a"));
}

TEST_CASE("a control edge from the CPU begins at the copy") {
  CopyGraph g(R"(
      x, other = Placeholder() @CPU
      switch = Switch(x, x) @CPU
      a = Relu(x)
      b = Relu(a, ^x)
      c = Relu(a, ^other)
      d = Relu(switch)
      e = Relu(a, ^switch)
      f = Relu(a, ^x) @CPU)");
  const auto control = [&](const char* name) {
    return g.graph.FindNode(name).control(0);
  };
  CHECK(control("b") == g.InputOf("a"));
  CHECK(g.graph.FindNode("b").num_controls() == 1);
  CHECK(control("c").name() == "other");
  CHECK(g.IsCopy("d", kToDeviceOp, "switch"));
  CHECK(control("e").name() == "switch");
  CHECK(control("f").name() == "x");
}

// ---- The kernels -------------------------------------------------------------

class Copy {
 public:
  Copy(Kernels& kernels, const char* op, const std::vector<float>& x)
      : is_to_host_(op == kToHostOp), stream_(kernels.fixture.device()) {
    testing::Node node;
    node.op = op;
    node.name = "copy";
    node.attrs["T"] = DataType::kFloat;
    auto kernel = testing::FakeKernel::Create(node, "MINIMAL");
    REQUIRE_MESSAGE(kernel.ok(), kernel.status().ToString());
    kernel_ = *std::move(kernel);
    run_ = std::make_unique<testing::KernelRun>(*kernel_, &stream_);
    run_->AddInput<float>({{static_cast<int64_t>(x.size())}, x}, !is_to_host_);
    run_->AddOutput(DataType::kFloat, is_to_host_);
  }
  // Starts the copy, after a task of the stream that waits for `flag`.
  void StartAfter(Flag& flag) {
    CHECK(stream_.compute()
              .RunOnHost([&flag] {
                flag.Wait();
                return absl::OkStatus();
              })
              .ok());
    Start();
  }
  void Start() {
    run_->Start([this](absl::Status status) {
      result_ = std::move(status);
      done_.Set();
    });
  }
  bool is_done() { return done_.is_set(); }
  absl::Status Await() {
    done_.Wait();
    return result_;
  }
  // The streams of the test run a task at once, but not the copy before it.
  void AwaitStream() { CHECK(stream_.compute().BlockHostUntilDone().ok()); }
  std::vector<float> Output() {
    AwaitStream();
    return run_->Output<float>(0).elements;
  }

 private:
  const bool is_to_host_;
  testing::FakeDevice& stream_;
  std::unique_ptr<testing::FakeKernel> kernel_;
  std::unique_ptr<testing::KernelRun> run_;
  Flag done_;
  absl::Status result_;
};

const std::vector<float> kElements = {1, -2, 3.5f};

TEST_CASE("a copy to the device waits for nothing, and keeps its source") {
  Kernels kernels;
  Flag flag;
  int64_t held = 0;
  {
    Copy copy(kernels, kToDeviceOp, kElements);
    held = testing::Counted<capi::TF_Tensor>::live;
    copy.StartAfter(flag);
    CHECK(copy.is_done());
    CHECK(copy.Await().ok());
    CHECK(testing::Counted<capi::TF_Tensor>::live > held);
    flag.Set();
    CHECK(copy.Output() == kElements);
  }
  CHECK(testing::Counted<capi::TF_Tensor>::live <= held);
}

TEST_CASE("a copy to the host ends when the stream has done it") {
  Kernels kernels;
  Flag flag;
  Copy copy(kernels, kToHostOp, kElements);
  copy.StartAfter(flag);
  CHECK_FALSE(copy.is_done());
  flag.Set();
  CHECK(copy.Await().ok());
  CHECK(copy.Output() == kElements);
}

TEST_CASE("a copy to the host that is done at once ends at once") {
  Kernels kernels;
  Copy copy(kernels, kToHostOp, kElements);
  queue::mistake = queue::Mistake::kRunsTasksAtOnce;
  copy.Start();
  queue::mistake = queue::Mistake::kNone;
  CHECK(copy.is_done());
  CHECK(copy.Await().ok());
  copy.AwaitStream();
}

TEST_CASE("a copy to the host fails as its stream does") {
  Kernels kernels;
  for (const bool is_at_once : {false, true}) {
    Copy copy(kernels, kToHostOp, kElements);
    queue::stream_status = absl::DataLossError("the device lost it");
    if (is_at_once) queue::mistake = queue::Mistake::kRunsTasksAtOnce;
    copy.Start();
    const absl::Status status = copy.Await();
    queue::stream_status = absl::OkStatus();
    queue::mistake = queue::Mistake::kNone;
    CHECK(absl::IsDataLoss(status));
    copy.AwaitStream();
  }
}

TEST_CASE("empty tensors are copied") {
  Kernels kernels;
  for (const char* op : {kToDeviceOp, kToHostOp}) {
    Copy copy(kernels, op, {});
    copy.Start();
    CHECK(copy.Await().ok());
    CHECK(copy.Output().empty());
  }
}

}  // namespace
}  // namespace tfplug::stream_copy_test
