// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/kernel/kernel.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/passes/report_fallback.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "graph/build_graph.h"
#include "tfplug/testing/fake_tensorflow.h"

namespace tfplug::report_fallback_test {
namespace {

constexpr char kCpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";

struct NoKernel : Kernel {
  absl::Status Compute(KernelContext&) override { return absl::OkStatus(); }
};

// Registers a kernel of the library for the duration of a test.
struct Fixture {
  Fixture() {
    kernel_internal::RegisteredKernels().Clear();
    RegisterKernel<NoKernel>(
        KernelDef("Relu").Device("SIM").TypeConstraint<float>("T"));
  }
  ~Fixture() { kernel_internal::RegisteredKernels().Clear(); }

  Node AddNode(const char* name, const char* op, DataType type,
               const char* device = kCpu) {
    const Node node = Add(graph, name, op, {}, device);
    node.SetAttr("T", type);
    return node;
  }
  std::vector<std::string> Lines() {
    const testing::TF_GrapplerItem item;
    const PassContext context("SIM", "", &item);
    if (has_device_node)
      AddNode("on_device", "Relu", DataType::kFloat, kSimDevice);
    has_device_node = false;
    return ReportFallback::NewLines(graph, context);
  }

  const testing::ScopedFakeTensorFlow fake;
  Graph graph;
  bool has_device_node = true;  // Lines() adds one.
};

TEST_CASE_FIXTURE(Fixture, "each op and type on the CPU is reported once") {
  AddNode("a", "Erfinv", DataType::kFloat);
  AddNode("b", "Erfinv", DataType::kFloat);
  AddNode("c", "Relu", DataType::kInt8);
  AddNode("d", "Relu", DataType::kFloat);
  AddNode("e", "Erfinv", DataType::kDouble);
  CHECK(Lines() ==
        std::vector<std::string>{
            "Erfinv (T=float) runs on the CPU: this library has no kernel for "
            "it on SIM (node 'a')",
            "Relu (T=int8) runs on the CPU: this library's kernels for it on "
            "SIM do not support these types (node 'c')",
            "Relu (T=float) runs on the CPU: the model, a colocation "
            "constraint or a host memory argument requires it, although this "
            "library has a kernel on SIM (node 'd')",
            "Erfinv (T=double) runs on the CPU: this library has no kernel for "
            "it on SIM (node 'e')"});
  const auto before = TextOf(graph);
  CHECK(Lines().empty());
  CHECK(TextOf(graph) == before);
}

TEST_CASE_FIXTURE(Fixture, "nodes on the device and bookkeeping are ignored") {
  AddNode("a", "Digamma", DataType::kFloat, kSimDevice);
  AddNode("b", "_Arg", DataType::kFloat);
  AddNode("c", "Const", DataType::kFloat);
  AddNode("d", "MapDataset", DataType::kFloat);
  AddNode("e", "StatefulPartitionedCall", DataType::kFloat);
  AddNode("f", "Digamma", DataType::kFloat, "");
  CHECK(Lines().empty());
}

TEST_CASE_FIXTURE(Fixture, "ops with TensorFlow's kernels are ignored") {
  for (const char* op : {"Shape", "Reshape", "ExpandDims", "Squeeze", "Size"}) {
    AddNode(op, op, DataType::kFloat);
  }
  Add(graph, "read", "ReadVariableOp", {}, kCpu)
      .SetAttr("dtype", DataType::kFloat);
  AddNode("sum", "AddV2", DataType::kInt32);
  Add(graph, "less", "Less", {}, kCpu).SetAttr("T", DataType::kInt32);
  AddNode("other", "AddV2", DataType::kInt64);
  const auto lines = Lines();
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].substr(0, 25) == "AddV2 (T=int64) runs on t");
}

TEST_CASE_FIXTURE(Fixture, "a graph without a node on the device is ignored") {
  AddNode("a", "Lgamma", DataType::kFloat);
  has_device_node = false;
  CHECK(Lines().empty());
  has_device_node = true;
  CHECK(Lines().size() == 1);
}

TEST_CASE("the environment variable enables the report") {
  unsetenv("TFPLUG_LOG_FALLBACK");
  CHECK_FALSE(ReportFallback::IsEnabled());
  setenv("TFPLUG_LOG_FALLBACK", "0", 1);
  CHECK_FALSE(ReportFallback::IsEnabled());
  setenv("TFPLUG_LOG_FALLBACK", "1", 1);
  CHECK(ReportFallback::IsEnabled());
  unsetenv("TFPLUG_LOG_FALLBACK");
}

}  // namespace
}  // namespace tfplug::report_fallback_test
