// SPDX-License-Identifier: Apache-2.0
// Compares Graph with protobuf messages, for random valid and invalid graphs
// and random edits. The fuzzer does the same for longer.
#include <string>

#include "absl/strings/str_cat.h"
#include "doctest/doctest.h"
#include "graph/graph_oracle.h"

namespace tfplug::testing::oracle_test {
namespace {

// Every other name ends with a digit; such names are parsed by other code.
std::string Name(uint32_t i) {
  return absl::StrCat("node", i, i % 2 == 0 ? "" : "/x");
}

// Returns a graph of `count` nodes with inputs from each other.
std::string RandomGraph(Random& random, int count) {
  proto::GraphDef graph;
  for (int i = 0; i < count; ++i) {
    proto::NodeDef& node = *graph.add_node();
    node.set_name(Name(i));
    node.set_op(Below(random, 2) == 0 ? "Relu" : "AddV2");
    for (uint32_t k = Below(random, 4); k > 0 && i > 0; --k) {
      const std::string from = Name(Below(random, i));
      const uint32_t kind = Below(random, 4);
      node.add_input(kind == 0 ? "^" + from : kind == 1 ? from + ":1" : from);
    }
    (*node.mutable_attr())["T"].set_type(proto::DT_FLOAT);
    (*node.mutable_attr())["N"].set_i(i);
  }
  for (int i = 0; i < count % 3; ++i) {
    proto::FunctionDef& function = *graph.mutable_library()->add_function();
    function.mutable_signature()->set_name(absl::StrCat("f", i));
    function.mutable_signature()->add_input_arg()->set_name("x");
    for (const char* name : {"n", "m"}) {
      proto::NodeDef& node = *function.add_node_def();
      node.set_name(name);
      node.set_op("Relu");
      node.add_input(name[0] == 'n' ? "x" : "n:activations:0");
    }
    (*function.mutable_ret())["y"] = "m:activations:0";
    (*function.mutable_control_ret())["z"] = "n";
  }
  return Deterministic(graph);
}

TEST_CASE("random edits of valid graphs") {
  Random random(2);
  for (int i = 0; i < 300; ++i) {
    const std::string problem =
        CheckGraph(RandomGraph(random, 1 + i % 20), i, 30);
    INFO(problem);
    REQUIRE(problem.empty());
  }
}

// Returns a serialized AttrValue with a random member, which may be only a part
// of the value.
std::string RandomAttr(Random& random) {
  proto::AttrValue value;
  switch (Below(random, 9)) {
    case 0:
      value.set_i(static_cast<int64_t>(random()) - (1 << 30));
      break;
    case 1:
      value.set_s("text");
      break;
    case 2:
      value.mutable_shape()->add_dim()->set_size(random());
      break;
    case 3:
      value.mutable_shape()->set_unknown_rank(Below(random, 2) == 0);
      break;
    case 4:
      value.mutable_func()->set_name("f");
      break;
    case 5:
      value.mutable_list()->add_type(proto::DT_HALF);
      break;
    case 6:
      value.mutable_list()->add_s("in a list");
      break;
    default:
      value.mutable_list()->add_i(Below(random, 300));
      value.mutable_list()->add_i(-1);
  }
  return Deterministic(value);
}

std::string Field(int number, const std::string& bytes) {
  std::string field(1, static_cast<char>(number << 3 | 2));
  AppendVarint(bytes.size(), 0, &field);
  return field + bytes;
}

TEST_CASE("attributes split over several fields") {
  Random random(5);
  for (int i = 0; i < 3000; ++i) {
    std::string node = Field(1, "n");
    for (uint32_t entries = 1 + Below(random, 3); entries > 0; --entries) {
      std::string entry = Field(1, Below(random, 2) == 0 ? "T" : "N");
      for (uint32_t values = 1 + Below(random, 2); values > 0; --values) {
        std::string value;
        for (uint32_t parts = Below(random, 4); parts > 0; --parts) {
          value += RandomAttr(random);
        }
        entry += Field(2, value);
      }
      node += Field(5, entry);
    }
    const std::string problem = CheckGraph(Field(1, node), i, 2);
    INFO(problem);
    REQUIRE(problem.empty());
  }
}

TEST_CASE("fields of a shape with a wrong wire type are unknown fields") {
  const std::string shape = Field(2, "\x08\x03\x0A\x01x") + "\x10\x01" +
                            Field(3, "\x01") + Field(2, "");
  const std::string attr = Field(1, "shape") + Field(2, Field(7, shape));
  CHECK(CheckGraph(Field(1, Field(1, "n") + Field(5, attr)), 1, 0) == "");
}

TEST_CASE("a function with two name fields") {
  for (const char* second : {"g", ""}) {
    const std::string function =
        Field(1, Field(1, "f")) + Field(1, Field(1, second));
    CHECK(CheckGraph(Field(2, Field(1, function)), 1, 1) == "");
  }
}

TEST_CASE("random edits of graphs in unusual encodings") {
  google::protobuf::LogSilencer quiet;
  Random random(3);
  int valid = 0;
  for (int i = 0; i < 4000; ++i) {
    WireTree tree(RandomGraph(random, i % 5));
    for (int changes = i % 30; changes > 0; --changes) tree.Mutate(random);
    const std::string bytes = tree.ToString();
    proto::GraphDef message;
    valid += ParseGraphDef(bytes, &message);
    const std::string problem = CheckGraph(bytes, i, 5);
    INFO(problem);
    REQUIRE(problem.empty());
  }
  CHECK(valid > 1000);
  CHECK(valid < 3900);
}

TEST_CASE("graphs whose names are hashed while they are parsed") {
  google::protobuf::LogSilencer quiet;
  Random random(6);
  const std::string padding = Field(15, std::string(1 << 20, 'x'));
  int valid = 0;
  for (int i = 0; i < 200; ++i) {
    WireTree tree(RandomGraph(random, 1 + i % 12));
    for (int changes = i % 10; changes > 0; --changes) tree.Mutate(random);
    std::string bytes = tree.ToString();
    if (i % 5 == 4) bytes[Below(random, bytes.size())] ^= 1;
    bytes = i % 2 == 0 ? bytes + padding : padding + bytes;
    REQUIRE(graph_internal::GraphIndex::IsHashed(bytes));
    proto::GraphDef message;
    valid += ParseGraphDef(bytes, &message);
    const std::string problem = CheckGraph(bytes, i, 8);
    INFO(problem);
    REQUIRE(problem.empty());
  }
  CHECK(valid > 50);
  CHECK(valid < 190);
}

TEST_CASE("random changes of bytes") {
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
}  // namespace tfplug::testing::oracle_test
