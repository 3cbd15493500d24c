// SPDX-License-Identifier: Apache-2.0
// A pass over protobuf messages, for TensorFlow's own CPU: run by
// test_proto.py. What libprotobuf does most, parse, copy, reflect, print, it
// does beside the one in TensorFlow.
#include <google/protobuf/text_format.h>

#include <string>

#include "tfplug/graph_pass.h"
#include "tfplug/proto/proto.h"

namespace {

namespace proto = tfplug::proto;

// Rint becomes Ceil, by way of text and reflection.
struct RintToCeil : tfplug::MessagePass {
  absl::Status Rewrite(proto::GraphDef& graph,
                       const tfplug::PassContext& /*context*/) override {
    for (proto::NodeDef& node : *graph.mutable_node()) {
      if (node.op() == "Cosh") {
        return absl::InvalidArgumentError("this pass refuses Cosh");
      }
      if (node.op() != "Rint") continue;
      std::string text;
      google::protobuf::TextFormat::PrintToString(node, &text);
      proto::NodeDef copy;
      if (!google::protobuf::TextFormat::ParseFromString(text, &copy) ||
          copy.GetReflection()->FieldSize(
              copy, copy.GetDescriptor()->FindFieldByName("input")) == 0) {
        return absl::InternalError("a node is not what it was: " + text);
      }
      node = copy;
      node.set_op("Ceil");
    }
    return absl::OkStatus();
  }
};

// One over Graph in the same pipeline, which sees what the other one made.
struct CeilToFloor : tfplug::GraphPass {
  absl::Status Run(tfplug::Graph& graph,
                   const tfplug::PassContext& /*context*/) override {
    for (tfplug::Node node : graph.nodes("Ceil")) {
      if (node.input(0).node.op() == "Mul") node.SetOp("Floor");
    }
    return absl::OkStatus();
  }
};

TFPLUG_REGISTER_GRAPH_PASSES("CPU", RintToCeil, CeilToFloor);

}  // namespace
