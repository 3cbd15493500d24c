// SPDX-License-Identifier: Apache-2.0
#include "tfplug/passes/keep_conditions_on_host.h"

#include <doctest/doctest.h>
#include <tfplug/graph_pass.h>
#include <tfplug/kernel/kernel.h>
#include <tfplug/kernel/register_kernel.h>

#include <string>
#include <vector>

#include "leak_checked_fake.h"
#include "passes/first_passes.h"
#include "tfplug/testing/graph_text.h"

namespace tfplug::keep_conditions_on_host_test {
namespace {

struct NoKernel : Kernel {
  absl::Status Compute(KernelContext&) override { return absl::OkStatus(); }
};

// a and b compare int32; `both` is their LogicalAnd, and `not` its LogicalNot.
struct Loop {
  Loop() {
    kernel_internal::RegisteredKernels().Clear();
    const auto last = testing::AddNodes(graph, R"(
        a, b = Less() {T=int32}
        both = LogicalAnd(a, b)
        not = LogicalNot(both))",
                                        {"SIM", "", nullptr});
    REQUIRE(last.ok());
    both = graph.FindNode("both");
    inverse = *last;
  }
  ~Loop() { kernel_internal::RegisteredKernels().Clear(); }

  static void AddKernels(const char* label) {
    for (const char* op : {"LogicalAnd", "LogicalNot"}) {
      RegisterKernel<NoKernel>(KernelDef(op).Device("SIM").Label(label));
    }
  }
  void Run() {
    const PassContext context("SIM", "", nullptr);
    REQUIRE(KeepConditionsOnHost().Run(graph, context).ok());
    REQUIRE(graph.Check().ok());
  }
  static std::string LabelOf(Node node) {
    return node.GetAttr<std::string>("_kernel").value_or("");
  }

  testing::LeakCheckedFake fake;
  Graph graph;
  Node both, inverse;
};

TEST_CASE("the logic of comparisons on the host is computed there") {
  Loop loop;
  Loop::AddKernels(kOnHostLabel);
  loop.Run();
  CHECK(Loop::LabelOf(loop.both) == kOnHostLabel);
  CHECK(Loop::LabelOf(loop.inverse) == kOnHostLabel);
}

TEST_CASE("an input in device memory, or on another device") {
  for (const char* device : {"SIM:0", "SIM:1", "CPU:0"}) {
    Loop loop;
    Loop::AddKernels(kOnHostLabel);
    const Node b = loop.graph.FindNode("b");
    const bool is_own = b.device().find(device) != std::string::npos;
    if (is_own) {
      b.SetAttr("T", DataType::kFloat);
    } else {
      b.SetDevice(std::string("/device:") + device);
    }
    loop.Run();
    const bool is_on_host = std::string(device) == "CPU:0";
    CHECK((Loop::LabelOf(loop.both) == kOnHostLabel) == is_on_host);
    CHECK((Loop::LabelOf(loop.inverse) == kOnHostLabel) == is_on_host);
  }
}

TEST_CASE("inputs that all come from the CPU are no reason to move an op") {
  Loop loop;
  Loop::AddKernels(kOnHostLabel);
  for (const char* name : {"a", "b"}) {
    loop.graph.FindNode(name).SetDevice("/device:CPU:0");
  }
  loop.Run();
  CHECK(Loop::LabelOf(loop.both).empty());
}

TEST_CASE("nodes of other devices, and of a kernel that someone chose") {
  for (const bool is_chosen : {true, false}) {
    Loop loop;
    Loop::AddKernels(kOnHostLabel);
    if (is_chosen) {
      loop.both.SetAttr("_kernel", "mine");
    } else {
      for (const char* name : {"a", "b", "both"}) {
        loop.graph.FindNode(name).SetDevice("/device:CPU:0");
      }
    }
    loop.Run();
    CHECK(Loop::LabelOf(loop.both) == (is_chosen ? "mine" : ""));
  }
}

TEST_CASE("without a kernel for the host nothing changes") {
  Loop loop;
  Loop::AddKernels("other");
  loop.Run();
  CHECK(Loop::LabelOf(loop.both).empty());
}

TEST_CASE("the kernel for the host must be of the same op") {
  Loop loop;
  RegisterKernel<NoKernel>(
      KernelDef("LogicalNot").Device("SIM").Label(kOnHostLabel));
  loop.Run();
  CHECK(Loop::LabelOf(loop.both).empty());
  CHECK(Loop::LabelOf(loop.inverse).empty());
}

TEST_CASE("the pass is among the default passes, except in 2.17") {
  CheckFirstExceptIn217("tfplug::KeepConditionsOnHost",
                        &OptimizerSettings::keep_conditions_on_host);
}

}  // namespace
}  // namespace tfplug::keep_conditions_on_host_test
