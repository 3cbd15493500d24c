// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "graph_jobs.h"
#include "tfplug/proto/graph.pb.h"

namespace {

using tfplug::proto::DataType;
using tfplug::proto::GraphDef;
using tfplug::proto::NodeDef;

// A chain of units of ten nodes, each a convolution with its variables and
// activation. Names and attributes resemble those of a Keras model.
class Network {
 public:
  explicit Network(int nodes) {
    std::string input = Add("input", "Placeholder", {});
    for (int unit = 0; size() + 10 <= nodes; ++unit) {
      input = AddUnit(unit, input);
    }
    while (size() < nodes)
      input = Add("output_" + Number(), "Identity", {input});
  }
  std::vector<std::string>& nodes() { return nodes_; }

 private:
  int size() const { return static_cast<int>(nodes_.size()); }
  std::string Number() const { return std::to_string(nodes_.size()); }

  std::string AddUnit(int unit, const std::string& input) {
    const std::string scope = "StatefulPartitionedCall/model/stage" +
                              std::to_string(unit / 64) + "_block" +
                              std::to_string(unit % 64) + "/conv2d_" +
                              std::to_string(unit);
    const std::string w = Add(scope + "/kernel", "VarHandleOp", {});
    const std::string b = Add(scope + "/bias", "VarHandleOp", {});
    const std::string read_w =
        Add(scope + "/Conv2D/ReadVariableOp", "ReadVariableOp", {w});
    const std::string read_b =
        Add(scope + "/BiasAdd/ReadVariableOp", "ReadVariableOp", {b});
    const std::string product =
        Add(scope + "/Conv2D", "Conv2D", {input, read_w});
    const std::string sum =
        Add(scope + "/BiasAdd", "BiasAdd", {product, read_b});
    const std::string active = Add(scope + "/Relu", "Relu", {sum});
    const std::string scaled = Add(scope + "/mul", "Mul", {active, read_b});
    const std::string result =
        Add(scope + "/add", "AddV2", {scaled, input, "^" + w});
    Add(scope + "/NoOp", "NoOp", {"^" + read_w, "^" + read_b, "^" + result});
    return result;
  }

  std::string Add(const std::string& name, const std::string& op,
                  const std::vector<std::string>& inputs) {
    NodeDef node;
    node.set_name(name);
    node.set_op(op);
    for (const std::string& input : inputs) node.add_input(input);
    node.set_device("/job:localhost/replica:0/task:0/device:SIM:0");
    auto& attr = *node.mutable_attr();
    attr["T"].set_type(DataType::DT_FLOAT);
    auto* const shape = attr["_output_shapes"].mutable_list()->add_shape();
    for (int size : {-1, 56, 56, 64}) shape->add_dim()->set_size(size);
    attr["_xla_compile_id"].set_s("cluster_" + std::to_string(size() / 100));
    if (op == "Conv2D") {
      for (int stride : {1, 2, 2, 1}) {
        attr["strides"].mutable_list()->add_i(stride);
      }
      attr["padding"].set_s("SAME");
      attr["data_format"].set_s("NHWC");
    }
    GraphDef graph;
    *graph.add_node() = node;
    nodes_.push_back(graph.SerializeAsString());
    return name;
  }

  std::vector<std::string> nodes_;
};

}  // namespace

std::string SyntheticGraph(int nodes, bool shuffled) {
  Network network(nodes);
  if (shuffled) {
    std::shuffle(network.nodes().begin(), network.nodes().end(),
                 std::mt19937(1));
  }
  std::string graph;
  for (const std::string& node : network.nodes()) graph += node;
  GraphDef rest;
  rest.mutable_versions()->set_producer(1882);
  return graph + rest.SerializeAsString();
}

std::string ReadGraph(const std::string& name) {
  const std::string synthetic = "synthetic:";
  if (name.rfind(synthetic, 0) == 0) {
    const std::string rest = name.substr(synthetic.size());
    return SyntheticGraph(std::atoi(rest.c_str()),
                          rest.find("shuffled") != rest.npos);
  }
  std::ifstream file(name, std::ios::binary);
  const std::string graph(std::istreambuf_iterator<char>(file), {});
  if (graph.empty()) {
    std::fprintf(stderr, "cannot read %s\n", name.c_str());
    std::exit(2);
  }
  return graph;
}
