// SPDX-License-Identifier: Apache-2.0
// Tests the messages that are generated from include/tfplug/proto/: their
// package is tfplug's, and their encoding is TensorFlow's.
#include <string>

#include "doctest/doctest.h"
#include "tfplug/proto/function.pb.h"
#include "tfplug/proto/graph.pb.h"
#include "tfplug/proto/op_performance_data.pb.h"

namespace tfplug::messages_test {
namespace {

TEST_CASE("messages are in tfplug's package") {
  CHECK(proto::GraphDef::descriptor()->full_name() == "tfplug.proto.GraphDef");
  CHECK(proto::OpInfo::descriptor()->full_name() == "tfplug.proto.OpInfo");
}

TEST_CASE("field numbers are TensorFlow's") {
  proto::GraphDef graph;
  proto::NodeDef& node = *graph.add_node();
  node.set_name("n");
  node.set_op("Op");
  node.add_input("i");
  (*node.mutable_attr())["T"].set_type(proto::DT_FLOAT);
  graph.mutable_versions()->set_producer(5);
  graph.mutable_library()->add_function()->mutable_signature()->set_name("f");
  std::string bytes;
  REQUIRE(graph.SerializeToString(&bytes));
  // The bytes of the same graph from TensorFlow in Python.
  CHECK(bytes ==
        "\n\x13\n\x01n\x12\x02Op\x1a\x01i*\x07\n\x01T\x12\x02"
        "0\x01\x12\x07\n\x05\n\x03\n\x01"
        "f\"\x02\x08\x05");
}

}  // namespace
}  // namespace tfplug::messages_test
