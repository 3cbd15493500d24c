// SPDX-License-Identifier: Apache-2.0
// A pass over protobuf messages for TensorFlow's CPU device, run by
// tests/tensorflow/test_proto.py. It parses, copies, prints and uses reflection
// with the plug-in's libprotobuf, in a process that also holds TensorFlow's
// libprotobuf.
#include <google/protobuf/text_format.h>

#include <string>

#include "tfplug/graph_pass.h"
#include "tfplug/proto/proto.h"

namespace {

namespace proto = tfplug::proto;

// Replaces Rint with Ceil. Uses text format and reflection.
struct RintToCeil : tfplug::MessagePass {
  absl::Status Rewrite(proto::GraphDef& graph,
                       const tfplug::PassContext& /*context*/) override {
    for (proto::NodeDef& node : *graph.mutable_node()) {
      if (node.op() == "Cosh") {
        return absl::InvalidArgumentError("node '" + node.name() +
                                          "': this pass rejects Cosh");
      }
      if (node.op() != "Rint") continue;
      std::string text;
      google::protobuf::TextFormat::PrintToString(node, &text);
      proto::NodeDef copy;
      if (!google::protobuf::TextFormat::ParseFromString(text, &copy) ||
          copy.GetReflection()->FieldSize(
              copy, copy.GetDescriptor()->FindFieldByName("input")) == 0) {
        return absl::InternalError("text format changed a node: " + text);
      }
      node = copy;
      node.set_op("Ceil");
    }
    return absl::OkStatus();
  }
};

// A pass over Graph in the same pipeline, which reads the result of the other.
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
