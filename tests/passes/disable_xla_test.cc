// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/passes/default_passes.h>
#include <tfplug/passes/disable_xla.h>
#include <tfplug/testing.h>

#include <string>
#include <vector>

#include "graph/build_graph.h"

namespace tfplug::disable_xla_test {
namespace {

Node AddCall(Graph& graph, const std::string& name, const std::string& op,
             const char* device) {
  const Node node = Add(graph, name, op, {}, device);
  node.SetAttr("_XlaMustCompile", true);
  return node;
}
bool MustCompile(Graph& graph, const std::string& name) {
  return graph.FindNode(name).GetAttr<bool>("_XlaMustCompile").value();
}
absl::Status Run(Graph& graph) {
  const testing::TF_GrapplerItem item;
  return DisableXla().Run(graph, PassContext("SIM", "", &item));
}

TEST_CASE("calls on the device, or not yet placed, are not compiled") {
  testing::ScopedFakeTensorFlow fake;
  Graph graph;
  AddCall(graph, "stateful", "StatefulPartitionedCall", kSimDevice);
  AddCall(graph, "stateless", "PartitionedCall", kSimDevice);
  AddCall(graph, "unplaced", "PartitionedCall", "");
  AddCall(graph, "on_cpu", "PartitionedCall", kCpuDevice);
  REQUIRE(Run(graph).ok());
  CHECK_FALSE(MustCompile(graph, "stateful"));
  CHECK_FALSE(MustCompile(graph, "stateless"));
  CHECK_FALSE(MustCompile(graph, "unplaced"));
  CHECK(MustCompile(graph, "on_cpu"));
}

TEST_CASE("a graph without compiled calls is left unchanged") {
  testing::ScopedFakeTensorFlow fake;
  Graph built;
  Add(built, "call", "PartitionedCall");
  AddCall(built, "no", "StatefulPartitionedCall", kSimDevice)
      .SetAttr("_XlaMustCompile", false);
  const std::string bytes = built.ToString();
  Graph graph = Graph::Parse(bytes).value();
  REQUIRE(Run(graph).ok());
  CHECK_FALSE(graph.changed());
  CHECK_FALSE(graph.FindNode("call").HasAttr("_XlaMustCompile"));
}

TEST_CASE("disable_xla is a default pass that a setting turns off") {
  const auto has_pass = [](const char* device_type, bool disable_xla) {
    OptimizerSettings settings;
    settings.disable_xla = disable_xla;
    std::vector<graph_internal::PassEntry> entries;
    passes_internal::AppendFirstPasses(device_type, settings, entries);
    for (const graph_internal::PassEntry& entry : entries) {
      if (std::string(entry.name) == "tfplug::DisableXla") return true;
    }
    return false;
  };
  CHECK(has_pass("SIM", true));
  CHECK_FALSE(has_pass("SIM", false));
  CHECK_FALSE(has_pass("CPU", true));
}

}  // namespace
}  // namespace tfplug::disable_xla_test
