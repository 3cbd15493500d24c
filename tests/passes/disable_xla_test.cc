// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/passes/disable_xla.h>
#include <tfplug/testing.h>
#include <tfplug/testing/graph_text.h>

#include <string>

#include "passes/first_passes.h"

namespace tfplug::disable_xla_test {
namespace {

TEST_CASE("calls on the device, or not yet placed, are not compiled") {
  testing::ScopedFakeTensorFlow tensorflow;
  testing::TF_GrapplerItem item;
  testing::GraphTextOptions options;
  options.device = "SIM";  // of nodes whose line has no "@"
  options.attrs = "_XlaMustCompile=true";
  options.item = &item;  // receives the shapes that the text has

  Graph graph;
  const auto last = testing::AddNodes(graph, R"(
      x: float[?,2] = Placeholder()
      half: float = 0.5
      first = StatefulPartitionedCall(x, half) {f=@body, Tin=[float, float]}
      second = PartitionedCall(first:1, ^x) {f=@body}
      unplaced = PartitionedCall(first) @
      on_cpu = PartitionedCall(first) @CPU)",
                                      options);
  REQUIRE_MESSAGE(last.ok(), last.status().ToString());
  REQUIRE(DisableXla().Run(graph, PassContext("SIM", "", &item)).ok());
  CHECK(testing::CompareGraph(graph, R"(
      first = StatefulPartitionedCall(x, half) {_XlaMustCompile=false}
      second = PartitionedCall(first:1, ^x) {_XlaMustCompile=false, f=@body}
      unplaced = PartitionedCall(first) @ {_XlaMustCompile=false, !Tin}
      on_cpu = PartitionedCall(first) @CPU)",
                              options) == "");
}

TEST_CASE("a graph without compiled calls is left unchanged") {
  testing::ScopedFakeTensorFlow fake;
  Graph built;
  REQUIRE(testing::AddNodes(built, R"(
      call = PartitionedCall() @SIM
      no = StatefulPartitionedCall() @SIM {_XlaMustCompile=false})")
              .ok());
  const std::string bytes = built.ToString();
  Graph graph = Graph::Parse(bytes).value();
  const testing::TF_GrapplerItem item;
  REQUIRE(DisableXla().Run(graph, PassContext("SIM", "", &item)).ok());
  CHECK_FALSE(graph.changed());
}

TEST_CASE("disable_xla is a default pass that a setting turns off") {
  const std::string name = "tfplug::DisableXla";
  OptimizerSettings settings;
  CHECK(IsFirstPass(name, settings, {2, 21}));
  CHECK_FALSE(IsFirstPass(name, settings, {2, 21}, "CPU"));
  settings.disable_xla = false;
  CHECK_FALSE(IsFirstPass(name, settings, {2, 21}));
}

}  // namespace
}  // namespace tfplug::disable_xla_test
