// SPDX-License-Identifier: Apache-2.0
// Included first, to check that it compiles alone: headers_test has no
// protobuf.
#include "tfplug/proto/proto.h"
// A separate block, so that clang-format keeps proto.h first.
#include <climits>
#include <stdexcept>
#include <string>

#include "doctest/doctest.h"
#include "tfplug/graph_pass.h"
#include "tfplug/testing/fake_tensorflow.h"
#include "tfplug/testing/graph_host.h"

namespace tfplug::proto_test {
namespace {

using absl::StatusCode;

proto::GraphDef ThreeNodes() {
  proto::GraphDef graph;
  for (const char* name : {"a", "b", "c"}) {
    proto::NodeDef& node = *graph.add_node();
    node.set_name(name);
    node.set_op(name[0] == 'a' ? "Placeholder" : "Relu");
    if (name[0] != 'a') node.add_input(std::string(1, name[0] - 1));
    (*node.mutable_attr())["T"].set_type(proto::DT_FLOAT);
  }
  graph.mutable_versions()->set_producer(1987);
  graph.mutable_library()->add_function()->mutable_signature()->set_name("f");
  return graph;
}

std::string Bytes(const google::protobuf::MessageLite& message) {
  return MessageToBytes(message, true).value();
}

TEST_CASE("a message is copied to a TF_Buffer and back") {
  testing::ScopedFakeTensorFlow fake;
  const proto::GraphDef graph = ThreeNodes();
  const absl::StatusOr<Buffer> buffer = MessageToBuffer(graph);
  REQUIRE(buffer.ok());
  proto::GraphDef copy;
  copy.add_node()->set_name("replaced");
  REQUIRE(BufferToMessage(*buffer, &copy).ok());
  CHECK(Bytes(copy) == Bytes(graph));
}

TEST_CASE("an empty message becomes 0 bytes at a non-null address") {
  capi::TF_Buffer buffer = {};
  REQUIRE(MessageToBuffer(proto::GraphDef(), &buffer).ok());
  CHECK(buffer.data != nullptr);
  CHECK(buffer.length == 0);
  proto::GraphDef graph = ThreeNodes();
  CHECK(BufferToMessage(buffer, &graph).ok());
  CHECK(graph.node_size() == 0);
  buffer.data_deallocator(const_cast<void*>(buffer.data), buffer.length);
  CHECK(BufferToMessage(capi::TF_Buffer{}, &graph).ok());
}

TEST_CASE("a buffer's previous contents are freed") {
  static int freed = 0;
  freed = 0;
  capi::TF_Buffer buffer = {&freed, 1, [](void* data, size_t length) {
                              CHECK(length == 1);
                              ++*static_cast<int*>(data);
                            }};
  REQUIRE(MessageToBuffer(ThreeNodes(), &buffer).ok());
  CHECK(freed == 1);
  buffer.data_deallocator(const_cast<void*>(buffer.data), buffer.length);
  CHECK(freed == 1);
}

TEST_CASE("malformed bytes are rejected with the name of the message type") {
  google::protobuf::LogSilencer quiet;
  const std::string bytes = Bytes(ThreeNodes());
  proto::GraphDef graph;
  const absl::Status cut = BytesToMessage(bytes.substr(0, 30), &graph);
  CHECK(cut.code() == StatusCode::kInvalidArgument);
  CHECK(cut.message() ==
        "the 30 bytes are not a tfplug.proto.GraphDef: they are truncated, "
        "damaged, or of another type");
  proto::NodeDef node;
  CHECK_FALSE(BytesToMessage("\x0A\x01\xFF", &node).ok());
}

TEST_CASE("more than INT_MAX bytes are rejected before they are read") {
  proto::GraphDef graph;
  const absl::Status status =
      BytesToMessage(absl::string_view("", size_t{INT_MAX} + 1), &graph);
  CHECK(status.code() == StatusCode::kResourceExhausted);
  CHECK(status.message() ==
        "the tfplug.proto.GraphDef has 2147483648 bytes, but protobuf and "
        "TensorFlow cannot read more than 2147483647; keep large constants in "
        "variables");
  CHECK(proto_internal::CheckMessageSize("NodeDef", INT_MAX).ok());
}

TEST_CASE("an edited Graph is converted to a message and back") {
  const std::string bytes = Bytes(ThreeNodes());
  Graph graph = Graph::Parse(bytes).value();
  graph.FindNode("b").SetOp("Tanh");
  proto::GraphDef message;
  REQUIRE(GraphToMessage(graph, &message).ok());
  CHECK(message.node(1).op() == "Tanh");
  CHECK(message.library().function(0).signature().name() == "f");

  CHECK(graph.GetFunctions().size() == 1);
  CHECK(graph.UniqueName("b") == "b_1");
  message.mutable_node(2)->set_op("Elu");
  message.mutable_library()->add_function()->mutable_signature()->set_name("g");
  message.mutable_versions()->set_producer(2000);
  REQUIRE(MessageToGraph(message, &graph).ok());
  CHECK(graph.changed());
  CHECK(graph.FindNode("c").op() == "Elu");
  CHECK(graph.FindNode("c").input(0).node == graph.FindNode("b"));
  CHECK(graph.ToString() == Bytes(message));
  REQUIRE(graph.GetFunctions().size() == 2);
  CHECK(graph.GetFunctions()[1].name == "g");
  Graph moved = std::move(graph);
  moved.FindNode("c").SetOp("Selu");
  proto::GraphDef last;
  REQUIRE(GraphToMessage(moved, &last).ok());
  CHECK(last.node(2).op() == "Selu");
  CHECK(last.versions().producer() == 2000);
}

TEST_CASE("an attribute is converted to a message and back") {
  const std::string bytes = Bytes(ThreeNodes());
  Graph graph = Graph::Parse(bytes).value();
  const Node node = graph.FindNode("b");
  proto::AttrValue value;
  REQUIRE(BytesToMessage(node.RawAttr("T"), &value).ok());
  CHECK(value.type() == proto::DT_FLOAT);
  value.mutable_list()->add_i(7);
  node.SetRawAttr("N", MessageToBytes(value).value());
  CHECK(node.GetAttr<std::vector<int64_t>>("N").value() ==
        std::vector<int64_t>{7});
}

// ---- Passes ----------------------------------------------------------------

int rewrites = 0;
struct ReluToElu : MessagePass {
  absl::Status Rewrite(proto::GraphDef& graph,
                       const PassContext& context) override {
    ++rewrites;
    CHECK(context.device_type() == "SIM");
    for (proto::NodeDef& node : *graph.mutable_node()) {
      if (node.op() == "Relu") node.set_op("Elu");
      if (node.op() == "Fail") return absl::NotFoundError("a failing node");
#ifdef __cpp_exceptions
      if (node.op() == "Throw") throw std::runtime_error("thrown");
#else
      if (node.op() == "Throw") return absl::InternalError("not thrown");
#endif
      if (node.op() == "Twice") graph.add_node()->set_name(node.name());
      if (node.op() == "Cycle") node.add_input("c");
      if (node.op() == "Dangle") node.add_input("nothing");
    }
    return absl::OkStatus();
  }
};

// Reads the result of ReluToElu as a Graph.
struct EluToTanh : GraphPass {
  absl::Status Run(Graph& graph, const PassContext&) override {
    for (Node node : graph.nodes("Elu")) {
      if (node.name() == "c") node.SetOp("Tanh");
    }
    return absl::OkStatus();
  }
};

TFPLUG_REGISTER_GRAPH_PASSES("SIM", ReluToElu, EluToTanh);

testing::GraphHost::Outcome Optimize(const proto::GraphDef& graph) {
  auto host = testing::GraphHost::Register(&TF_InitGraph).value();
  testing::TF_GrapplerItem item;
  return host->Optimize(Bytes(graph), item);
}

// This is the example in docs/guide/protobuf.md.
struct DropNoise : tfplug::MessagePass {
  absl::Status Rewrite(tfplug::proto::GraphDef& graph,
                       const tfplug::PassContext&) override {
    for (tfplug::proto::NodeDef& node : *graph.mutable_node()) {
      if (node.op() == "GaussianNoise") node.set_op("Identity");
    }
    return absl::OkStatus();
  }
};

TEST_CASE("the example in the documentation") {
  testing::ScopedFakeTensorFlow fake;
  proto::GraphDef graph = ThreeNodes();
  graph.mutable_node(1)->set_op("GaussianNoise");
  const PassContext context("SIM", "", nullptr);
  CHECK(DropNoise().Rewrite(graph, context).ok());
  CHECK(graph.node(1).op() == "Identity");
}

TEST_CASE("a MessagePass runs in one pipeline with a GraphPass") {
  testing::ScopedFakeTensorFlow fake;
  rewrites = 0;
  const auto outcome = Optimize(ThreeNodes());
  REQUIRE(outcome.runs.size() == 2);
  CHECK(outcome.runs[0].ok());
  // The second run changes nothing and returns ABORTED.
  CHECK(outcome.runs[1].code() == StatusCode::kAborted);
  CHECK(rewrites == 2);
  proto::GraphDef expected = ThreeNodes();
  expected.mutable_node(1)->set_op("Elu");
  expected.mutable_node(2)->set_op("Tanh");
  proto::GraphDef graph;
  REQUIRE(BytesToMessage(outcome.graph, &graph).ok());
  CHECK(Bytes(graph) == Bytes(expected));
}

TEST_CASE("a graph that no pass changes is not written") {
  testing::ScopedFakeTensorFlow fake;
  proto::GraphDef graph;
  graph.add_node()->set_name("a");
  const auto outcome = Optimize(graph);
  CHECK(outcome.runs[0].code() == StatusCode::kAborted);
  CHECK_FALSE(outcome.changed);
}

TEST_CASE("failures name the pass and leave the graph unchanged") {
  testing::ScopedFakeTensorFlow fake;
  proto::GraphDef graph = ThreeNodes();
  for (const char* op : {"Fail", "Throw", "Twice", "Dangle", "Cycle"}) {
    graph.mutable_node(0)->set_op(op);
    const auto outcome = Optimize(graph);
    INFO(outcome.runs[0].ToString());
    CHECK_FALSE(outcome.changed);
    CHECK_FALSE(outcome.runs[0].ok());
    CHECK(outcome.runs[0].code() != StatusCode::kAborted);
    CHECK(outcome.runs[0].message().find("ReluToElu") != std::string::npos);
  }
}

}  // namespace
}  // namespace tfplug::proto_test
