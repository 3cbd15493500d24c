// SPDX-License-Identifier: Apache-2.0
// Graph says, does and writes what protobuf messages do: for random graphs,
// sound and broken ones, and random edits. The fuzzers do the same for longer.
#include <string>

#include "doctest/doctest.h"
#include "graph/graph_oracle.h"
#include "tfplug/testing/graph_validator.h"

namespace tfplug::testing {
namespace {

// A graph of `count` nodes with inputs from each other.
std::string RandomGraph(Random& random, int count) {
  proto::GraphDef graph;
  for (int i = 0; i < count; ++i) {
    proto::NodeDef& node = *graph.add_node();
    node.set_name(absl::StrCat("node", i));
    node.set_op(Below(random, 2) == 0 ? "Relu" : "AddV2");
    for (uint32_t k = Below(random, 4); k > 0 && i > 0; --k) {
      const std::string from = absl::StrCat("node", Below(random, i));
      const uint32_t kind = Below(random, 4);
      node.add_input(kind == 0 ? "^" + from : kind == 1 ? from + ":1" : from);
    }
    (*node.mutable_attr())["T"].set_type(proto::DT_FLOAT);
    (*node.mutable_attr())["N"].set_i(i);
  }
  return Deterministic(graph);
}

TEST_CASE("random edits of sound graphs") {
  Random random(2);
  for (int i = 0; i < 300; ++i) {
    const std::string problem =
        CheckGraph(RandomGraph(random, 1 + i % 20), i, 30);
    INFO(problem);
    REQUIRE(problem.empty());
  }
}

TEST_CASE("random edits of graphs in a form that nobody would write") {
  google::protobuf::LogSilencer quiet;
  Random random(3);
  int valid = 0;
  for (int i = 0; i < 4000; ++i) {
    WireTree tree(RandomGraph(random, i % 5));
    for (int changes = i % 30; changes > 0; --changes) tree.Mutate(random);
    const std::string bytes = tree.ToString();
    valid += ValidateGraphDef(bytes).ok();
    const std::string problem = CheckGraph(bytes, i, 5);
    INFO(problem);
    REQUIRE(problem.empty());
  }
  CHECK(valid > 1000);
  CHECK(valid < 3900);
}

TEST_CASE("bytes at random") {
  google::protobuf::LogSilencer quiet;
  Random random(4);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = RandomGraph(random, 3);
    for (int changes = 1 + i % 5; changes > 0; --changes) {
      bytes[Below(random, bytes.size())] = static_cast<char>(random());
    }
    bytes.resize(bytes.size() - Below(random, 3));
    const std::string problem = CheckGraph(bytes, i, 3);
    INFO(problem);
    REQUIRE(problem.empty());
  }
}

}  // namespace
}  // namespace tfplug::testing
