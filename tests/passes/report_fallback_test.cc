// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/kernel/kernel.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/passes/report_fallback.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tfplug/testing/fake_tensorflow.h"
#include "tfplug/testing/graph_text.h"

namespace tfplug::report_fallback_test {
namespace {

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

  void Add(const char* text) {
    REQUIRE(testing::AddNodes(graph, text, {"CPU", "T=float", nullptr}).ok());
  }
  std::vector<std::string> Lines() {
    const testing::TF_GrapplerItem item;
    const PassContext context("SIM", "", &item);
    if (has_device_node) Add("on_device = Relu() @SIM");
    has_device_node = false;
    return ReportFallback::NewLines(graph, context);
  }

  const testing::ScopedFakeTensorFlow fake;
  Graph graph;
  bool has_device_node = true;  // Lines() adds one.
};

TEST_CASE_FIXTURE(Fixture, "each op and type on the CPU is reported once") {
  Add(R"(a, b = Erfinv()
         c = Relu() {T=int8}
         d = Relu()
         e = Erfinv() {T=double})");
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
  const std::string before = testing::PrintGraph(graph);
  CHECK(Lines().empty());
  CHECK(testing::PrintGraph(graph) == before);
}

TEST_CASE_FIXTURE(Fixture, "nodes on the device and bookkeeping are ignored") {
  Add(R"(a = Digamma() @SIM
         b = _Arg()
         c = Const()
         d = MapDataset()
         e = StatefulPartitionedCall()
         f = Digamma() @)");
  CHECK(Lines().empty());
}

TEST_CASE_FIXTURE(Fixture, "ops with TensorFlow's kernels are ignored") {
  Add(R"(shape = Shape()
         reshape = Reshape()
         expand = ExpandDims()
         squeeze = Squeeze()
         size = Size()
         read = ReadVariableOp() {!T, dtype=float}
         sum = AddV2() {T=int32}
         less = Less() {T=int32}
         other = AddV2() {T=int64})");
  const auto lines = Lines();
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].substr(0, 25) == "AddV2 (T=int64) runs on t");
}

TEST_CASE_FIXTURE(Fixture, "a graph without a node on the device is ignored") {
  Add("a = Lgamma()");
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
